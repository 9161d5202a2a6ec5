/**
 * Binds every Pod that has no node to the one there is, unless it is gated or
 * the node is cordoned. A Pod is tried again after a failure until it is bound
 * or gone; at most one attempt per Pod runs.
 */
import { type Node, nodes, type Pod, pods } from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { Conflict, NotFound } from '../../kube/errors.ts';
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
  readonly #node: Reflector<Node>;
  readonly #unbound: Reflector<Pod>;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    const { client, nodeName, onError } = options;
    this.#node = new Reflector({
      client,
      type: nodes,
      fieldSelector: `metadata.name=${nodeName}`,
      onChange: () => {
        for (const pod of this.#unbound.values()) void this.#consider(pod);
      },
      onError,
    });
    this.#unbound = new Reflector({
      client,
      type: pods,
      fieldSelector: 'spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed',
      onChange: ({ type, object }) => {
        if (type !== 'deleted') void this.#consider(object);
      },
      onError,
    });
  }

  async start(): Promise<void> {
    await this.#node.start().synced;
    this.#unbound.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#node.stop(), this.#unbound.stop()]);
  }

  async #consider(pod: Stored<Pod>): Promise<void> {
    const { uid } = pod.metadata;
    const node = this.#node.get(this.#options.nodeName);
    if (!isSchedulable(pod, node) || this.#inFlight.has(uid)) return;
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
      // Bound already, or gone.
      if (error instanceof Conflict || error instanceof NotFound) return true;
      if (!this.#stopping.signal.aborted) onError(error);
      return false;
    }
  }
}

export function isSchedulable({ metadata, spec }: Pod, node: Node | undefined): boolean {
  if (metadata?.deletionTimestamp !== undefined || (spec?.schedulingGates ?? []).length > 0) return false;
  return !node?.spec?.unschedulable || toleratesCordon(spec);
}

/** Pods of DaemonSets do; they stay on a node that is drained. */
function toleratesCordon(spec: Pod['spec']): boolean {
  return (spec?.tolerations ?? []).some(
    ({ key, operator }) =>
      operator === 'Exists' && (key === undefined || key === 'node.kubernetes.io/unschedulable'),
  );
}
