/**
 * Prometheus metrics under the names that dashboards for controllers already
 * know. Nothing outside of this file knows prom-client: everybody else gets
 * observers. No object names in labels.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ClientObserver } from '../kube/client.ts';
import type { ReflectorHealth, ReflectorObserver } from '../kube/reflector-health.ts';
import type { QueueObserver, WorkQueue } from './work-queue.ts';

export interface ControllerMetrics {
  readonly queue: QueueObserver;
  /** Depth and age are read from the queue when somebody scrapes. */
  observeQueue(queue: WorkQueue): void;
  workers(count: number): void;
  /** A reconcile begins; call what it returns when it ends. */
  active(): () => void;
  reconciled(result: 'success' | 'error' | 'requeue' | 'requeue_after'): void;
  reconcileTime(ms: number): void;
  terminalError(): void;
  panicked(): void;
  timedOut(): void;
}

/** Fits the observer of the webhook server, a layer above. */
export interface WebhookMetrics {
  started(route: string): void;
  finished(route: string, code: number, ms: number): void;
  panicked(route: string): void;
}

export interface Metrics {
  forController(name: string): ControllerMetrics;
  /** Health is read when somebody scrapes. */
  forInformer(resource: string, health: () => ReflectorHealth): ReflectorObserver;
  readonly client: ClientObserver;
  /** Asked when somebody scrapes. */
  leader(name: string, leads: () => boolean): void;
  readonly certificates: { read(): void; failed(): void };
  readonly webhooks: WebhookMetrics;
  /** Registers a metric of another layer. */
  readonly registry: Registry;
  /** The text that Prometheus scrapes. */
  scrape(): Promise<{ readonly contentType: string; readonly body: string }>;
}

const RECONCILE_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5,
  1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
const QUEUE_BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000];
const RESULTS = ['success', 'error', 'requeue', 'requeue_after'] as const;

export function createMetrics({ processMetrics = true } = {}): Metrics {
  const registry = new Registry();
  if (processMetrics) collectDefaultMetrics({ register: registry });
  const controllers = controllerInstruments(registry);
  const leaders = new Map<string, () => boolean>();
  const leading = new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this process leads (1) or stands by (0).',
    labelNames: ['name'],
    registers: [],
    collect() {
      for (const [name, leads] of leaders) this.set({ name }, leads() ? 1 : 0);
    },
  });
  registry.registerMetric(leading);
  return {
    registry,
    forController: controllers,
    forInformer: informerInstruments(registry),
    client: clientInstruments(registry),
    leader: (name, leads) => void leaders.set(name, leads),
    certificates: certificateInstruments(registry),
    webhooks: webhookInstruments(registry),
    async scrape() {
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

function controllerInstruments(registry: Registry): (controller: string) => ControllerMetrics {
  const counter = (name: string, help: string, labelNames: string[]): Counter =>
    new Counter({ name, help, labelNames, registers: [registry] });
  const gauge = (name: string, help: string, labelNames: string[], collect?: (this: Gauge) => void): Gauge =>
    new Gauge({ name, help, labelNames, registers: [registry], ...(collect && { collect }) });
  const histogram = (name: string, help: string, labelNames: string[], buckets: number[]): Histogram =>
    new Histogram({ name, help, labelNames, buckets, registers: [registry] });

  const total = counter('controller_runtime_reconcile_total', 'Reconciles by result.', [
    'controller',
    'result',
  ]);
  const errors = counter('controller_runtime_reconcile_errors_total', 'Failed reconciles.', ['controller']);
  const terminal = counter(
    'controller_runtime_terminal_reconcile_errors_total',
    'Reconciles that failed for good.',
    ['controller'],
  );
  const panics = counter(
    'controller_runtime_reconcile_panics_total',
    'Reconciles that threw something that is no Error.',
    ['controller'],
  );
  const timeouts = counter(
    'controller_runtime_reconcile_timeouts_total',
    'Reconciles that exceeded their time.',
    ['controller'],
  );
  const time = histogram(
    'controller_runtime_reconcile_time_seconds',
    'Time of a reconcile.',
    ['controller'],
    RECONCILE_BUCKETS,
  );
  const maxConcurrent = gauge('controller_runtime_max_concurrent_reconciles', 'Workers.', ['controller']);
  const activeWorkers = gauge('controller_runtime_active_workers', 'Workers that are busy.', ['controller']);

  const queueLabels = ['name', 'controller'];
  const adds = counter('workqueue_adds_total', 'Keys added.', queueLabels);
  const retries = counter('workqueue_retries_total', 'Keys added again after a failure.', queueLabels);
  const queueDuration = histogram(
    'workqueue_queue_duration_seconds',
    'How long keys waited.',
    queueLabels,
    QUEUE_BUCKETS,
  );
  const workDuration = histogram(
    'workqueue_work_duration_seconds',
    'How long keys were worked on.',
    queueLabels,
    QUEUE_BUCKETS,
  );

  // What only a queue knows is asked for when somebody scrapes.
  const queues = new Map<string, WorkQueue>();
  gauge('workqueue_depth', 'Keys that wait.', [...queueLabels, 'priority'], function () {
    for (const [name, queue] of queues)
      for (const priority of ['normal', 'background'] as const)
        this.set({ name, controller: name, priority }, queue.depth(priority));
  });
  gauge('workqueue_unfinished_work_seconds', 'Age of all work under way.', queueLabels, function () {
    for (const [name, queue] of queues) this.set({ name, controller: name }, queue.unfinishedWorkMs / 1000);
  });
  gauge('workqueue_longest_running_processor_seconds', 'Age of the oldest work.', queueLabels, function () {
    for (const [name, queue] of queues) this.set({ name, controller: name }, queue.longestWorkMs / 1000);
  });

  return (controller) => {
    const own = { controller };
    const labels = { name: controller, controller };
    // A counter that appears only with its first failure cannot be alerted on.
    for (const result of RESULTS) total.inc({ controller, result }, 0);
    for (const each of [errors, terminal, panics, timeouts]) each.inc(own, 0);
    for (const each of [adds, retries]) each.inc(labels, 0);
    activeWorkers.set(own, 0);
    return {
      queue: {
        added: () => adds.inc(labels),
        retried: () => retries.inc(labels),
        started: (waitedMs) => queueDuration.observe(labels, waitedMs / 1000),
        finished: (workedMs) => workDuration.observe(labels, workedMs / 1000),
      },
      observeQueue: (queue) => void queues.set(controller, queue),
      workers: (count) => maxConcurrent.set(own, count),
      active() {
        activeWorkers.inc(own);
        return () => activeWorkers.dec(own);
      },
      reconciled(result) {
        total.inc({ controller, result });
        if (result === 'error') errors.inc(own);
      },
      reconcileTime: (ms) => time.observe(own, ms / 1000),
      terminalError: () => terminal.inc(own),
      panicked: () => panics.inc(own),
      timedOut: () => timeouts.inc(own),
    };
  };
}

function informerInstruments(registry: Registry): Metrics['forInformer'] {
  const registers = [registry];
  const labelNames = ['resource'];
  const health = new Map<string, () => ReflectorHealth>();
  const collected = (name: string, help: string, value: (health: ReflectorHealth) => number): Gauge =>
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        for (const [resource, read] of health) this.set({ resource }, value(read()));
      },
    });
  collected('taskflow_informer_synced', 'Whether the cache is complete.', ({ synced }) => (synced ? 1 : 0));
  collected('taskflow_informer_objects', 'Objects in the cache.', ({ objects }) => objects);
  collected(
    'taskflow_informer_last_event_seconds',
    'When the last byte came.',
    ({ lastActivity }) => lastActivity / 1000,
  );
  const counter = (name: string, help: string, ...more: string[]): Counter =>
    new Counter({ name, help, labelNames: [...labelNames, ...more], registers });
  const relists = counter('taskflow_informer_relists_total', 'Full lists.', 'reason');
  const reconnects = counter('taskflow_informer_watch_reconnects_total', 'Watches opened again.', 'reason');
  const misses = counter('taskflow_informer_cache_miss_total', 'Changes that the watch did not tell of.');
  const handlerErrors = counter('taskflow_informer_handler_errors_total', 'Handlers that threw.');
  return (resource, read) => {
    health.set(resource, read);
    misses.inc({ resource }, 0);
    return {
      relisted: (reason) => relists.inc({ resource, reason }),
      reconnected: (reason) => reconnects.inc({ resource, reason }),
      missed: (count) => misses.inc({ resource }, count),
      handlerFailed: () => handlerErrors.inc({ resource }),
    };
  };
}

const REQUEST_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
const SIZE_BUCKETS = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

function clientInstruments(registry: Registry): ClientObserver {
  const registers = [registry];
  const histogram = (name: string, help: string, buckets: number[]): Histogram =>
    new Histogram({ name, help, labelNames: ['verb', 'host'], buckets, registers });
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server.',
    labelNames: ['code', 'method', 'host'],
    registers,
  });
  const retries = new Counter({
    name: 'rest_client_request_retries_total',
    help: 'Requests that were sent again.',
    labelNames: ['code', 'verb', 'host'],
    registers,
  });
  const duration = histogram('rest_client_request_duration_seconds', 'Time of a request.', REQUEST_BUCKETS);
  const sent = histogram('rest_client_request_size_bytes', 'Size of a request.', SIZE_BUCKETS);
  const received = histogram('rest_client_response_size_bytes', 'Size of an answer.', SIZE_BUCKETS);
  return {
    request({ method, host, code, ms, requestBytes, responseBytes, retries: tries }) {
      const labels = { verb: method, host };
      // client-go writes this, too, where no answer came.
      const shown = code === undefined ? '<error>' : String(code);
      requests.inc({ code: shown, method, host });
      if (tries > 0) retries.inc({ code: shown, ...labels });
      duration.observe(labels, ms / 1000);
      sent.observe(labels, requestBytes);
      received.observe(labels, responseBytes);
    },
  };
}

function certificateInstruments(registry: Registry): Metrics['certificates'] {
  const counter = (name: string, help: string): Counter => new Counter({ name, help, registers: [registry] });
  const reads = counter('certwatcher_read_certificate_total', 'Certificates read.');
  const errors = counter('certwatcher_read_certificate_errors_total', 'Certificates that could not be read.');
  return { read: () => reads.inc(), failed: () => errors.inc() };
}

function webhookInstruments(registry: Registry): WebhookMetrics {
  const registers = [registry];
  const labelNames = ['webhook'];
  const latency = new Histogram({
    name: 'controller_runtime_webhook_latency_seconds',
    help: 'Time of an admission.',
    labelNames,
    buckets: REQUEST_BUCKETS,
    registers,
  });
  const requests = new Counter({
    name: 'controller_runtime_webhook_requests_total',
    help: 'Admissions by HTTP code.',
    labelNames: ['webhook', 'code'],
    registers,
  });
  const inFlight = new Gauge({
    name: 'controller_runtime_webhook_requests_in_flight',
    help: 'Admissions under way.',
    labelNames,
    registers,
  });
  const panics = new Counter({
    name: 'controller_runtime_webhook_panics_total',
    help: 'Rules that threw.',
    labelNames: [],
    registers,
  });
  return {
    started: (webhook) => inFlight.inc({ webhook }),
    finished(webhook, code, ms) {
      inFlight.dec({ webhook });
      requests.inc({ webhook, code: String(code) });
      latency.observe({ webhook }, ms / 1000);
    },
    panicked: () => panics.inc(),
  };
}
