/** Who works where: an object has a slot per branch, and a slot has room for one attempt. */
import type { Attempt } from './attempt.ts';
import { objectIdOf } from './object-id.ts';
import type { TaskSpec } from './task-manager.ts';

export class Slots {
  readonly #byObject = new Map<string, Map<string, Attempt>>();

  occupantOf(spec: TaskSpec): Attempt | undefined {
    return this.#byObject.get(objectIdOf(spec))?.get(spec.branch ?? '');
  }

  /** All that work on the object. */
  occupantsOf(object: string): Attempt[] {
    return [...(this.#byObject.get(object)?.values() ?? [])];
  }

  occupy(attempt: Attempt): void {
    const object = objectIdOf(attempt.spec);
    const branches = this.#byObject.get(object);
    if (branches) branches.set(attempt.branch, attempt);
    else this.#byObject.set(object, new Map([[attempt.branch, attempt]]));
  }

  free(attempt: Attempt): void {
    const object = objectIdOf(attempt.spec);
    const branches = this.#byObject.get(object);
    branches?.delete(attempt.branch);
    if (branches?.size === 0) this.#byObject.delete(object);
  }
}
