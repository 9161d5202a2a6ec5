/** Where the engine is measured: a control plane, the chain kind, and flows whose writes can be repeated. */
import { namespaces } from '../../src/kube/builtin-resources.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import type { ConnectionOptions } from '../../src/kube/connection.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import type { Cluster } from '../../src/local-cluster/cluster.ts';
import { mergePatch } from '../../src/taskflow/merge-patch.ts';
import chains, { type Chain, chain } from '../fixtures/chain/chain.ts';
import { installOperator, type OperatorAccess } from '../support/install-operator.ts';
import { callsSoFar, countOf } from './api-requests.ts';
import { inParallel } from './bare-patch.ts';

/** The operator's; it sees no other. */
export const NAMESPACE = 'chains';
export const BARE_NAMESPACE = 'bare';
const CREATED_AT_ONCE = 16;

export class EngineLab {
  readonly admin: KubeClient;
  readonly access: OperatorAccess;
  /** The operator's own identity, so that a bare call passes the same checks. */
  readonly identity: ConnectionOptions;

  private constructor(admin: KubeClient, access: OperatorAccess, identity: ConnectionOptions) {
    this.admin = admin;
    this.access = access;
    this.identity = identity;
  }

  static async prepare(cluster: Cluster): Promise<EngineLab> {
    const { admin } = cluster;
    const access = await installOperator(cluster, [{ name: 'chains', kinds: [chains] }]);
    for (const name of [NAMESPACE, BARE_NAMESPACE]) await admin.create(namespaces, { metadata: { name } });
    const account = { namespace: access.namespace, name: 'taskflow-operator' };
    return new EngineLab(admin, access, await cluster.serviceAccountConnection(account));
  }

  async create(namespace: string, name: string, spec: Chain['spec']): Promise<void> {
    await this.admin.create(chain, { metadata: { name, namespace }, spec }, { fieldManager: 'bench' });
  }

  async createMany(namespace: string, names: readonly string[], spec: Chain['spec']): Promise<void> {
    await inParallel(names.length, CREATED_AT_ONCE, (at) => this.create(namespace, names[at] ?? '', spec));
  }

  /** Runs one flow to its end, alone. */
  async runFlow(name: string, tasks: number): Promise<RecordedFlow> {
    const statuses: NonNullable<Chain['status']>[] = [{}];
    const seenAt: number[] = [];
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const reflector = new Reflector<Chain>({
      client: this.admin,
      type: chain,
      namespace: NAMESPACE,
      fieldSelector: `metadata.name=${name}`,
      onChange({ object: { status } }) {
        if (!status) return;
        statuses.push(status);
        seenAt.push(performance.now());
        if (status.status === 'done') resolve();
      },
    }).start();
    await reflector.synced;
    await this.create(NAMESPACE, name, { length: tasks });
    await done;
    await reflector.stop();
    const patches = statuses
      .slice(1)
      .map((status, before) => mergePatch(statuses[before] ?? {}, status) ?? {});
    return { patches, stepMs: seenAt.slice(1).map((at, before) => at - (seenAt[before] ?? at)) };
  }

  async statusWrites(): Promise<number> {
    const calls = await callsSoFar(this.admin);
    return countOf(calls, { verb: 'PATCH', resource: chain.plural, subresource: 'status' });
  }

  /** From the first start to the last end of these flows, as the engine itself has stored them. */
  async secondsOfFlows(names: readonly string[]): Promise<number> {
    const wanted = new Set(names);
    let first = Infinity;
    let last = 0;
    for await (const { metadata, status } of this.admin.listAll(chain, { namespace: NAMESPACE })) {
      if (!wanted.has(metadata.name)) continue;
      const [flow] = status?.operationHistory ?? [];
      first = Math.min(first, Date.parse(flow?.startedAt ?? ''));
      last = Math.max(last, Date.parse(flow?.finishedAt ?? ''));
    }
    return (last - first) / 1_000;
  }
}

export interface RecordedFlow {
  /** The status writes that the flow consisted of. */
  readonly patches: readonly object[];
  /** From one to the next, as a watch saw them. */
  readonly stepMs: readonly number[];
}
