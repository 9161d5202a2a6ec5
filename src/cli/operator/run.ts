/** `taskflow run`: reads the settings, puts the operator together, and runs it to its exit code. */
import { hostname } from 'node:os';
import { KubeClient } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { openConnection } from '../../kube/connection.ts';
import { EventRecorder } from '../../kube/event-recorder.ts';
import { connectionFromKubeconfig } from '../../kube/kubeconfig.ts';
import { electionIdentity, LeaderElector } from '../../kube/leader-election.ts';
import { messageOf } from '../../kube/thrown.ts';
import { maskValue } from '../../kube/mask-secrets.ts';
import type { ControlContext, System } from '../../resource-managers/kind.ts';
import { SYSTEMS } from '../../resource-managers/systems.ts';
import { ConfigError, loadConfig } from '../../runtime/config/load.ts';
import type { Config } from '../../runtime/config/schema.ts';
import { eventLoopCheck } from '../../runtime/event-loop.ts';
import { HealthChecks } from '../../runtime/health.ts';
import { Informers } from '../../runtime/informers.ts';
import { createLogger, type Logger } from '../../runtime/logging.ts';
import { createMetrics, type Metrics } from '../../runtime/metrics.ts';
import { EXIT, runOperator } from '../../runtime/operator.ts';
import { NotReady } from '../../task-manager/errors.ts';
import { createTaskManager } from '../../task-manager/pooled-task-manager.ts';
import type { TaskManager } from '../../task-manager/task-manager.ts';
import { FlowCatalogue } from '../../taskflow/flow-catalogue.ts';
import { createFlowMetrics } from '../../taskflow/flow-metrics.ts';
import { flowKindsOf, flowTable } from '../../resource-managers/flow-table.ts';
import type { RunOptions } from '../commands/run.ts';
import { chooseSystems } from '../choose-systems.ts';
import { UserError } from '../user-error.ts';
import { Controllers } from './controllers.ts';
import { Endpoints } from './endpoints.ts';
import { loadPlugins, refuseDoubles } from './plugins.ts';
import { Webhooks } from './webhooks.ts';

const USAGE_ERROR = 2;

export async function run(options: RunOptions): Promise<number> {
  const config = readConfig(options);
  const log = createLogger(config.log);
  log.info('operator starts', { config: maskValue(config) });
  const stop = stopOnSignals(log);
  endOnUnhandled(log);
  const systems = await systemsOf(config, log);
  return new Operator(config, log, systems, options).run(stop);
}

interface ChosenSystems {
  readonly chosen: readonly System[];
  readonly catalogue: FlowCatalogue;
  /** Plugins that could not be loaded. */
  readonly failures: readonly string[];
}

class Operator {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #systems: ChosenSystems;
  readonly #options: RunOptions;
  readonly #metrics: Metrics = createMetrics();
  readonly #health = new HealthChecks();

  constructor(config: Config, log: Logger, systems: ChosenSystems, options: RunOptions) {
    this.#config = config;
    this.#log = log;
    this.#systems = systems;
    this.#options = options;
  }

  async run(stop: AbortSignal): Promise<number> {
    const { kubeconfig, context } = this.#options;
    const access = await connectionFromKubeconfig({
      ...(kubeconfig !== undefined && { path: kubeconfig }),
      ...(context !== undefined && { context }),
    });
    await using connection = openConnection(access);
    const client = new KubeClient(connection, { observer: this.#metrics.client });
    const namespace = this.#config.leaderElection.namespace || access.namespace;
    this.#log.info('cluster found', { server: access.server, source: access.source, namespace });

    const elector = this.#elector(client, namespace);
    const identity = elector?.identity ?? hostname();
    const startedAt = Date.now();
    const fenced = new KubeClient(connection, {
      observer: this.#metrics.client,
      beforeWrite: () => elector?.elector.isLeader() === false && refuseToWrite(),
    });
    const events = new EventRecorder({
      client: fenced,
      component: 'taskflow-operator',
      instance: identity,
      onError: (error) => this.#log.warn('event was not recorded', { error }),
    });
    const informers = this.#informers(client);
    const flowMetrics = createFlowMetrics(this.#metrics.registry);
    const tasks = createTaskManager({
      poolSize: this.#config.engine.poolSize,
      observer: flowMetrics.tasks,
      onError: (error, { kind, key, flow, task, taskId }) => {
        if (!(error instanceof NotReady))
          this.#log.warn('task failed', { kind, object: key, flow, task, taskId, error });
      },
    });
    flowMetrics.observeTasks(tasks);
    const controlContext: ControlContext = {
      client: fenced,
      informers,
      events,
      log: this.#log,
      config: this.#config,
      clock: systemClock,
      tasks,
      catalogue: this.#systems.catalogue,
      flowMetrics,
      owner: () => ({ holder: identity, epoch: elector?.elector.epoch ?? startedAt }),
      isLeader: () => elector?.elector.isLeader() ?? true,
    };
    const controllers = new Controllers({
      systems: this.#systems.chosen,
      context: controlContext,
      metrics: this.#metrics,
    });
    const webhooks = this.#webhooks(client, namespace);
    const endpoints = new Endpoints({
      config: this.#config,
      health: this.#health,
      metrics: this.#metrics,
      debug: {
        '/debug/queues': () => controllers.queues(),
        '/debug/config': () => maskValue(this.#config),
        '/debug/tasks': () => tasks.snapshot(),
        '/debug/flows': () => flowTable(this.#systems.chosen, this.#systems.catalogue),
      },
      log: this.#log,
    });
    this.#addChecks(client, informers, webhooks);

    await endpoints.start();
    try {
      return await runOperator({
        components: [
          informers,
          controllers,
          drained(tasks, this.#config.shutdown.grace),
          ...(webhooks?.components ?? []),
          flushed(events),
        ],
        ...(elector && { leadership: elector.elector }),
        log: this.#log,
        stop,
        graceMs: this.#config.shutdown.grace,
      });
    } finally {
      await endpoints.stop();
    }
  }

  #elector(client: KubeClient, namespace: string): { elector: LeaderElector; identity: string } | undefined {
    const { enabled, name, leaseDuration, renewDeadline, retryPeriod } = this.#config.leaderElection;
    if (!enabled) return undefined;
    const identity = electionIdentity(hostname());
    const elector = new LeaderElector({
      client,
      namespace,
      name,
      identity,
      timing: { leaseDurationMs: leaseDuration, renewDeadlineMs: renewDeadline, retryPeriodMs: retryPeriod },
      onError: (error) => this.#log.warn('leader election has trouble', { error }),
    });
    this.#metrics.leader(name, () => elector.isLeader());
    return { elector, identity };
  }

  #informers(client: KubeClient): Informers {
    return new Informers({
      client,
      namespaces: this.#config.namespaces,
      log: this.#log,
      metrics: this.#metrics,
      syncTimeoutMs: this.#config.controller.cacheSyncTimeout,
    });
  }

  #webhooks(client: KubeClient, namespace: string): Webhooks | undefined {
    const config = this.#config;
    const kinds = this.#systems.chosen.flatMap((system) => system.kinds);
    if (!config.webhooks.enabled || process.env['DISABLE_WEBHOOKS'] === 'true' || kinds.length === 0)
      return undefined;
    const { chosen: systems } = this.#systems;
    return new Webhooks({ client, systems, config, namespace, log: this.#log, metrics: this.#metrics });
  }

  #addChecks(client: KubeClient, informers: Informers, webhooks: Webhooks | undefined): void {
    this.#health.addLive('event-loop', eventLoopCheck().check);
    this.#health.addReady('api-server', async () => {
      await client.text('/readyz', { timeoutMs: 5_000 });
      return undefined;
    });
    this.#health.addReady('caches', () => informers.fault());
    if (webhooks) this.#health.addReady('webhooks', () => webhooks.fault());
    const { failures } = this.#systems;
    if (failures.length > 0) this.#health.addReady('plugins', () => failures.join('; '));
  }
}

function readConfig(options: RunOptions): Config {
  try {
    return loadConfig({
      ...(options.config !== undefined && { file: options.config }),
      flags: options.settings,
    });
  } catch (error) {
    if (error instanceof ConfigError) throw new UserError(error.message, USAGE_ERROR);
    throw error;
  }
}

async function systemsOf(config: Config, log: Logger): Promise<ChosenSystems> {
  const { systems, failures } = await loadPlugins(config.engine.plugins);
  if (failures.length > 0 && config.engine.strictPlugins)
    throw new UserError(`plugins cannot be loaded:\n  ${failures.join('\n  ')}`, USAGE_ERROR);
  for (const failure of failures) log.error('plugin cannot be loaded', { failure });
  try {
    const chosen = [...chooseSystems(SYSTEMS, config.systems), ...systems];
    refuseDoubles(chosen);
    return { chosen, catalogue: checkedCatalogue(chosen, log), failures };
  } catch (error) {
    throw new UserError(messageOf(error), USAGE_ERROR);
  }
}

/** All faults at once: whoever wrote the kinds wants to see every one. */
function checkedCatalogue(systems: readonly System[], log: Logger): FlowCatalogue {
  const kinds = flowKindsOf(systems);
  const catalogue = new FlowCatalogue(systems.flatMap(({ extensions = [] }) => extensions));
  const faults = catalogue.faults(kinds);
  if (faults.length > 0) throw new Error(faults.join('\n'));
  for (const warning of catalogue.warnings(kinds)) log.warn('flow definition looks wrong', { warning });
  return catalogue;
}

/** Aborts at the first SIGTERM or SIGINT; the second one ends the process at once. */
function stopOnSignals(log: Logger): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(EXIT.failed);
      log.info('signal received', { signal });
      stop.abort(new Error(signal));
    });
  return stop.signal;
}

/** What nobody caught leaves the process in a state that nobody knows: better a restart. */
function endOnUnhandled(log: Logger): void {
  const end = (error: unknown): void => {
    log.error('unhandled error ends the process', { error });
    process.exit(EXIT.failed);
  };
  process.on('unhandledRejection', end).on('uncaughtException', end);
}

/** A leader that slept through its lease must not touch anything when it wakes. */
function refuseToWrite(): never {
  throw new Error('not written: this process no longer leads');
}

/** Claimed but not begun, or ended but not recorded: whatever drain leaves is taken up by the next leader. */
function drained(tasks: TaskManager, graceMs: number) {
  return {
    name: 'tasks',
    phase: 'controllers' as const,
    start: async (): Promise<void> => {},
    stop: async (): Promise<void> => {
      await tasks.drain(Math.max(1_000, graceMs - 5_000));
    },
  };
}

function flushed(events: EventRecorder) {
  return {
    name: 'events',
    phase: 'caches' as const,
    start: async (): Promise<void> => {},
    stop: () => events.flush(),
  };
}
