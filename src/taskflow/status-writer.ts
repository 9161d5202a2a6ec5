/**
 * Stores what a pass has made of a status: the difference alone, for the
 * version it was made for. Who wrote meanwhile is not overwritten: if the flow
 * has moved, the pass is void; if not, the difference is sent again.
 */
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import { Conflict, NotFound } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import type { KubeObject, Stored } from '../kube/resource-type.ts';
import { mergePatch } from './merge-patch.ts';
import type { EngineStatus } from './operation-context.ts';

export const FIELD_MANAGER = 'taskflow-operator';
const TRIES = 5;
const FIRST_DELAY_MS = 10;

export type Written<O extends KubeObject> =
  | { readonly kind: 'stored'; readonly object: Stored<O>; readonly wrote: boolean }
  /** Somebody else has moved the flow. */
  | { readonly kind: 'void' }
  | { readonly kind: 'gone' };

export interface StatusWriterOptions<O extends KubeObject> {
  readonly client: KubeClient;
  readonly informer: Informer<O>;
  readonly clock: Clock;
  readonly conflict?: () => void;
}

type Json = Readonly<Record<string, unknown>>;

export class StatusWriter<O extends KubeObject> {
  readonly #options: StatusWriterOptions<O>;

  constructor(options: StatusWriterOptions<O>) {
    this.#options = options;
  }

  async write(before: Stored<O>, after: Stored<O>, signal: AbortSignal): Promise<Written<O>> {
    const patch = mergePatch(statusOf(before), statusOf(after));
    if (!patch) return { kind: 'stored', object: before, wrote: false };
    let { resourceVersion } = before.metadata;
    for (let tries = 1; ; tries++) {
      try {
        return {
          kind: 'stored',
          object: await this.#patch(before, patch, resourceVersion, signal),
          wrote: true,
        };
      } catch (error) {
        if (error instanceof NotFound) return { kind: 'gone' };
        if (!(error instanceof Conflict) || tries === TRIES) throw error;
      }
      this.#options.conflict?.();
      const fresh = await this.#read(before, signal);
      if (!fresh || fresh.metadata.uid !== before.metadata.uid) return { kind: 'gone' };
      // The answer to our first try was lost on the way: it is stored all the same.
      if (cursor(fresh) === cursor(after) && cursor(fresh) !== cursor(before))
        return { kind: 'stored', object: fresh, wrote: true };
      if (cursor(fresh) !== cursor(before)) return { kind: 'void' };
      ({ resourceVersion } = fresh.metadata);
      await this.#options.clock.sleep(FIRST_DELAY_MS * 2 ** (tries - 1), signal);
    }
  }

  #patch(object: Stored<O>, patch: Json, resourceVersion: string, signal: AbortSignal): Promise<Stored<O>> {
    const { client, informer } = this.#options;
    const ref = refOf(object);
    const body = { metadata: { resourceVersion }, status: patch };
    return informer.write(ref, () =>
      client.patch(
        informer.type,
        ref,
        { kind: 'merge', body },
        { subresource: 'status', fieldManager: FIELD_MANAGER, signal },
      ),
    );
  }

  async #read(object: Stored<O>, signal: AbortSignal): Promise<Stored<O> | undefined> {
    const { client, informer } = this.#options;
    try {
      const fresh = await client.get(informer.type, refOf(object), { signal });
      informer.observeWrite(fresh);
      return fresh;
    } catch (error) {
      if (error instanceof NotFound) return undefined;
      throw error;
    }
  }
}

export function refOf({ metadata: { namespace, name } }: Stored): { name: string; namespace?: string } {
  return { name, ...(namespace !== undefined && { namespace }) };
}

function statusOf(object: KubeObject): Json {
  return (object as { status?: Json }).status ?? {};
}

/** Where the flow of an object is, as one text. */
function cursor(object: KubeObject): string {
  const { operationContext: context } = statusOf(object) as EngineStatus;
  if (!context) return 'none';
  const { flowId, idx, taskId, taskStatus, running = [], cancelRequested, compensating } = context;
  const live = running.map((slot) => [slot.task, slot.taskId, slot.taskStatus]);
  return JSON.stringify([flowId, idx, taskId, taskStatus, live, cancelRequested?.at, compensating]);
}
