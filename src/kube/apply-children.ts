/**
 * Server-side apply of what we own, with no request when there is nothing to
 * do. How that is known is in drift.ts. The server may write a field in
 * another form than ours (`1000m` becomes `1`, admission adds to a list); such
 * an object would look changed for ever. So what the server made of an apply
 * is remembered as its form of it, by uid; after a restart such an object costs
 * one apply more, which changes nothing on the server.
 */
import type { KubeClient } from './client.ts';
import { APPLIED_ANNOTATION, contentHash, covers, projection } from './drift.ts';
import { LruMap } from './lru-map.ts';
import { AlreadyOwned, controllerOf, withController } from './owner-references.ts';
import {
  apiVersionOf,
  type KubeObject,
  objectKey,
  type ObjectRef,
  type ResourceType,
  type Stored,
} from './resource-type.ts';

export interface ChildApplierOptions {
  readonly client: KubeClient;
  /** `taskflow/<controller>` */
  readonly fieldManager: string;
}

/** Where current objects are found: an informer of the kind. */
export interface ChildCache<T extends KubeObject> {
  get(key: string): Stored<T> | undefined;
  /** Runs the write so that reads see its result, and its event is known as ours. */
  write(ref: ObjectRef, write: () => Promise<Stored<T>>): Promise<Stored<T>>;
}

export interface ApplyOptions {
  /** Becomes the object's controller. */
  readonly owner?: Stored;
  readonly signal?: AbortSignal;
}

/** `unchanged`: no request was made. `deleting`: the object is on its way out, and was left alone. */
export type Applied<T extends KubeObject> = {
  readonly action: 'unchanged' | 'applied' | 'deleting';
  readonly object: Stored<T>;
};

const REMEMBERED = 16_384;

export class ChildApplier {
  readonly #options: ChildApplierOptions;
  /** What the server made of the fields of the last apply. */
  readonly #forms = new LruMap<string, { readonly wanted: string; readonly form: string }>(REMEMBERED);

  constructor(options: ChildApplierOptions) {
    this.#options = options;
  }

  async apply<T extends KubeObject>(
    type: ResourceType<T>,
    cache: ChildCache<T>,
    child: T & { metadata: { name: string } },
    { owner, signal }: ApplyOptions = {},
  ): Promise<Applied<T>> {
    const owned = owner ? withController(child, owner) : child;
    const wanted: T = { apiVersion: apiVersionOf(type), kind: type.kind, ...owned };
    const hash = contentHash(wanted);
    const ref = { name: child.metadata.name, namespace: child.metadata.namespace };
    const current = cache.get(objectKey(ref));
    if (current && owner) refuseForeign(current, owner);
    if (current?.metadata.deletionTimestamp !== undefined) return { action: 'deleting', object: current };
    if (current && !this.#drifted(wanted, hash, current)) return { action: 'unchanged', object: current };
    const object = await cache.write(ref, () =>
      this.#options.client.apply(type, withHash(wanted, hash), {
        fieldManager: this.#options.fieldManager,
        ...(signal && { signal }),
      }),
    );
    this.#forms.set(object.metadata.uid, { wanted: hash, form: contentHash(projection(wanted, object)) });
    return { action: 'applied', object };
  }

  #drifted(wanted: KubeObject, hash: string, current: Stored): boolean {
    if (current.metadata.annotations?.[APPLIED_ANNOTATION] !== hash) return true;
    if (covers(wanted, current)) return false;
    const known = this.#forms.get(current.metadata.uid);
    return known?.wanted !== hash || known.form !== contentHash(projection(wanted, current));
  }
}

function withHash<T extends KubeObject>(object: T, hash: string): T {
  const annotations = { ...object.metadata?.annotations, [APPLIED_ANNOTATION]: hash };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function refuseForeign(current: Stored, owner: Stored): void {
  const controller = controllerOf(current);
  if (controller && controller.uid !== owner.metadata.uid) throw new AlreadyOwned(current, controller);
}
