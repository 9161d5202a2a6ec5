/**
 * The engine in the process of a test, against the real API server: the
 * client's rights are those that the kind declares, and every request passes
 * the fault proxy.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { inject, onTestFinished, vi } from 'vitest';
import { baseRules, systemRules } from '../../src/cli/install/base-rules.ts';
import { Controllers } from '../../src/cli/operator/controllers.ts';
import { awaitObject } from '../../src/kube/await-object.ts';
import { clusterRoles, type Event, events as eventType } from '../../src/kube/builtin-resources.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { type Clock, systemClock } from '../../src/kube/clock.ts';
import { openConnection } from '../../src/kube/connection.ts';
import { EventRecorder } from '../../src/kube/event-recorder.ts';
import { objectKey, type Stored } from '../../src/kube/resource-type.ts';
import { mergeRules } from '../../src/kube/schema/rbac.ts';
import type { DefinedKind } from '../../src/resource-managers/define-kind.ts';
import { loadConfig } from '../../src/runtime/config/load.ts';
import { Informers } from '../../src/runtime/informers.ts';
import { createMetrics } from '../../src/runtime/metrics.ts';
import { createTaskManager } from '../../src/task-manager/pooled-task-manager.ts';
import type { TaskManager } from '../../src/task-manager/task-manager.ts';
import { FlowCatalogue, type FlowExtension } from '../../src/taskflow/flow-catalogue.ts';
import { createFlowMetrics } from '../../src/taskflow/flow-metrics.ts';
import { type Trial, trial } from '../fixtures/trial.ts';
import type { TestCluster } from './cluster.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import type { ManualClock } from './manual-clock.ts';
import { recordingLogger } from './recording-logger.ts';
import { createServiceAccount, requestToken } from './service-account.ts';

export interface EngineOptions {
  readonly clock?: Clock;
  readonly poolSize?: number;
  readonly extensions?: readonly FlowExtension[];
  readonly settings?: Readonly<Record<string, string>>;
  readonly namespace?: string;
  readonly epoch?: number;
}

export interface TestEngine {
  readonly namespace: string;
  readonly proxy: FaultProxy;
  readonly tasks: TaskManager;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  create(name: string, object?: Partial<Trial>): Promise<Stored<Trial>>;
  get(name: string): Promise<Stored<Trial>>;
  until(
    name: string,
    what: string,
    satisfied: (object: Stored<Trial>) => boolean,
    timeoutMs?: number,
  ): Promise<Stored<Trial>>;
  untilState(name: string, state: string, timeoutMs?: number): Promise<Stored<Trial>>;
  annotate(name: string, annotations: Readonly<Record<string, string | null>>): Promise<void>;
  /** Events of an object, as soon as there is one for this reason. */
  events(name: string, reason: string): Promise<Stored<Event>[]>;
  /** Status writes of an object that the API server has accepted. */
  statusWrites(name: string): number;
  stop(): Promise<void>;
}

const fixedConfig = (settings: Readonly<Record<string, string>>) => loadConfig({ flags: settings, env: {} });

export async function startEngine(
  cluster: TestCluster,
  kind: DefinedKind,
  options: EngineOptions = {},
): Promise<TestEngine> {
  const { admin } = cluster;
  const namespace = options.namespace ?? (await cluster.namespace('engine'));
  const shared = inject('cluster');
  const system = { name: 'trials', kinds: [kind] };
  const account = { namespace, name: `engine-${Math.random().toString(16).slice(2, 8)}` };
  const role = `${namespace}-${account.name}`;
  await admin.create(clusterRoles, {
    metadata: { name: role },
    rules: mergeRules([...baseRules({ webhooks: false }), ...systemRules([system])]) as never,
  });
  await createServiceAccount(admin, account, { clusterRole: role });
  const proxy = await startFaultProxy({ target: shared });
  const token = await requestToken(admin, account);
  const connection = openConnection({ server: proxy.server, ca: proxy.ca, token });
  const { log, lines } = recordingLogger();
  const clock = options.clock ?? systemClock;
  // Where time jumps, a reconcile must not be taken for one that hangs.
  const patience = options.clock ? { 'controller.reconcileTimeout': '10000h' } : {};
  const config = fixedConfig({ ...patience, ...options.settings });
  const metrics = createMetrics({ processMetrics: false });
  const client = new KubeClient(connection);
  const flowMetrics = createFlowMetrics(metrics.registry);
  const tasks = createTaskManager({ clock, poolSize: options.poolSize ?? 500, observer: flowMetrics.tasks });
  const informers = new Informers({ client, namespaces: [namespace], log, metrics, syncTimeoutMs: 30_000 });
  const recorder = new EventRecorder({ client, component: 'taskflow-operator', clock });
  const epoch = options.epoch ?? Date.now();
  const controllers = new Controllers({
    systems: [system],
    metrics,
    context: {
      client,
      informers,
      events: recorder,
      log,
      config,
      clock,
      tasks,
      catalogue: new FlowCatalogue(options.extensions ?? []),
      flowMetrics,
      owner: () => ({ holder: account.name, epoch }),
      isLeader: () => true,
    },
  });
  await informers.start(new AbortController().signal);
  await controllers.start();
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> =>
    (stopped ??= (async () => {
      await Promise.all([controllers.stop(), tasks.drain(1_000)]);
      await recorder.flush();
      await informers.stop();
      await connection.close();
      await proxy.stop();
    })());
  onTestFinished(stop);

  const ref = (name: string) => ({ namespace, name });
  const until: TestEngine['until'] = (name, what, satisfied, timeoutMs = 20_000) =>
    awaitObject(admin, trial, ref(name), satisfied, { timeoutMs, until: what });
  return {
    namespace,
    proxy,
    tasks,
    lines,
    create: (name, object = {}) =>
      admin.create(trial, {
        ...object,
        metadata: { ...object.metadata, ...ref(name) },
        spec: (object.spec ?? {}) as Trial['spec'],
      }),
    get: (name) => admin.get(trial, ref(name)),
    until,
    untilState: (name, state, timeoutMs) =>
      until(
        name,
        `to be ${state}`,
        ({ status }) => status?.status === state && !status.operationContext,
        timeoutMs,
      ),
    async annotate(name, annotations) {
      await admin.patch(
        trial,
        ref(name),
        { kind: 'merge', body: { metadata: { annotations } } },
        { fieldManager: 'alice' },
      );
    },
    events: (name, reason) =>
      vi.waitFor(
        async () => {
          const { items } = await admin.list(eventType, {
            namespace,
            fieldSelector: `involvedObject.name=${name}`,
          });
          if (items.some((item) => item.reason === reason)) return [...items];
          throw new Error(`no event ${reason} but: ${items.map((item) => item.reason).join(', ')}`);
        },
        { timeout: 10_000 },
      ),
    statusWrites: (name) =>
      proxy.requests.filter(
        ({ method, path, status }) =>
          method === 'PATCH' && status === 200 && path.endsWith(`/${objectKey({ name })}/status`),
      ).length,
    stop,
  };
}

/** Lets time pass on a clock that stands still, until something has happened. */
export async function whileTimePasses<T>(
  clock: ManualClock,
  happens: Promise<T>,
  stepMs = 10_000,
): Promise<T> {
  const over = new AbortController();
  const watched = happens.finally(() => over.abort());
  watched.catch(() => {});
  while (!over.signal.aborted) {
    await clock.advance(stepMs);
    await delay(10);
  }
  return watched;
}
