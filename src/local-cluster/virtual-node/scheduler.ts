/**
 * Binds every Pod that has no node to the one there is. A Pod is tried again
 * after a failure until it is bound or gone; at most one attempt per Pod runs.
 */
import { type Pod, pods } from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { Conflict, Forbidden, NotFound } from '../../kube/errors.ts';
import { Reflector } from '../../kube/reflector.ts';
import { objectKey, type Stored } from '../../kube/resource-type.ts';

export interface SchedulerOptions {
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly onError: (error: unknown) => void;
}

const RETRY_MS = 1000;

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #stopping = new AbortController();
  readonly #inFlight = new Set<string>();
  readonly #unbound: Reflector<Pod>;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#unbound = new Reflector({
      client: options.client,
      type: pods,
      fieldSelector: 'spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed',
      onChange: ({ type, object }) => {
        if (type !== 'deleted') void this.#consider(object);
      },
      onError: options.onError,
    });
  }

  start(): this {
    this.#unbound.start();
    return this;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#unbound.stop();
  }

  async #consider(pod: Stored<Pod>): Promise<void> {
    const { uid } = pod.metadata;
    if (!isSchedulable(pod) || this.#inFlight.has(uid)) return;
    this.#inFlight.add(uid);
    try {
      while (!this.#stopping.signal.aborted && this.#isWaiting(pod) && !(await this.#bind(pod)))
        await systemClock.sleep(RETRY_MS, this.#stopping.signal);
    } finally {
      this.#inFlight.delete(uid);
    }
  }

  #isWaiting(pod: Stored<Pod>): boolean {
    return this.#unbound.get(objectKey(pod.metadata))?.metadata.uid === pod.metadata.uid;
  }

  /** False if it should be tried again. The API server notes PodScheduled itself. */
  async #bind({ metadata: { name, namespace, uid } }: Stored<Pod>): Promise<boolean> {
    const { client, nodeName, onError } = this.#options;
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name, uid, ...(namespace !== undefined && { namespace }) },
      target: { apiVersion: 'v1', kind: 'Node', name: nodeName },
    };
    try {
      await client.createSub(pods, binding, {
        ref: { name, namespace },
        subresource: 'binding',
        signal: this.#stopping.signal,
      });
      return true;
    } catch (error) {
      // Bound already, gone, or in a namespace that is going.
      if (error instanceof Conflict || error instanceof NotFound || error instanceof Forbidden) return true;
      if (!this.#stopping.signal.aborted) onError(error);
      return false;
    }
  }
}

export function isSchedulable({ metadata, spec }: Pod): boolean {
  return metadata?.deletionTimestamp === undefined && (spec?.schedulingGates ?? []).length === 0;
}
