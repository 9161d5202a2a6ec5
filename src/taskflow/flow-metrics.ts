/** Metrics of tasks and flows. No object names in labels. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { TaskManager, TaskManagerObserver } from '../task-manager/task-manager.ts';
import type { CoordinatorObserver } from './coordinator.ts';

export interface FlowMetrics {
  readonly tasks: TaskManagerObserver;
  forKind(kind: string): CoordinatorObserver;
  conflict(kind: string): void;
  /** Asked when somebody scrapes. */
  observeObjects(kind: string, count: () => ReadonlyMap<string, number>): void;
  observeTasks(tasks: TaskManager): void;
}

const SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400];

export function createFlowMetrics(registry: Registry): FlowMetrics {
  const registers = [registry];
  const running = new Gauge({
    name: 'taskflow_task_running',
    help: 'Tasks that run now.',
    labelNames: ['kind', 'task'],
    registers,
  });
  const taskSeconds = new Histogram({
    name: 'taskflow_task_seconds',
    help: 'How long attempts of tasks took.',
    labelNames: ['kind', 'task', 'result'],
    buckets: SECONDS,
    registers,
  });
  const attempts = new Counter({
    name: 'taskflow_task_attempts_total',
    help: 'Attempts of tasks that have ended.',
    labelNames: ['kind', 'task', 'result'],
    registers,
  });
  const detached = new Counter({
    name: 'taskflow_detached_tasks_total',
    help: 'Attempts that ignored their signal and were given up.',
    registers,
  });
  const dropped = new Counter({
    name: 'taskflow_dropped_results_total',
    help: 'Results that nobody collected.',
    registers,
  });
  const flows = new Counter({
    name: 'taskflow_flow_total',
    help: 'Flows that have ended.',
    labelNames: ['kind', 'flow', 'result'],
    registers,
  });
  const flowSeconds = new Histogram({
    name: 'taskflow_flow_seconds',
    help: 'How long flows took.',
    labelNames: ['kind', 'flow', 'result'],
    buckets: SECONDS,
    registers,
  });
  const interruptions = new Counter({
    name: 'taskflow_interruptions_total',
    help: 'Attempts that were lost to restarts of the operator.',
    labelNames: ['kind'],
    registers,
  });
  const conflicts = new Counter({
    name: 'taskflow_status_conflicts_total',
    help: 'Status writes that met a newer version.',
    labelNames: ['kind'],
    registers,
  });
  return {
    tasks: {
      started: ({ kind, task }) => running.inc({ kind, task: baseName(task) }),
      settled({ kind, task, startedAt }, { status }, ms) {
        const labels = { kind, task: baseName(task) };
        if (startedAt !== undefined) running.dec(labels);
        attempts.inc({ ...labels, result: status });
        taskSeconds.observe({ ...labels, result: status }, ms / 1_000);
      },
      detached: () => detached.inc(),
      dropped: () => dropped.inc(),
    },
    forKind: (kind) => ({
      ended(flow, result, ms) {
        flows.inc({ kind, flow, result });
        flowSeconds.observe({ kind, flow, result }, ms / 1_000);
      },
      interrupted: () => interruptions.inc({ kind }),
    }),
    conflict: (kind) => conflicts.inc({ kind }),
    observeObjects: objectsGauge(registry),
    observeTasks: (tasks) => taskGauges(registry, tasks),
  };
}

/** Members and nodes are many; their task is what a dashboard asks for. */
function baseName(task: string): string {
  return task.split(':', 1)[0] ?? task;
}

function objectsGauge(registry: Registry): FlowMetrics['observeObjects'] {
  const counts = new Map<string, () => ReadonlyMap<string, number>>();
  const objects = new Gauge({
    name: 'taskflow_objects',
    help: 'Objects by kind and state.',
    labelNames: ['kind', 'status'],
    registers: [],
    collect() {
      this.reset();
      for (const [kind, count] of counts)
        for (const [status, value] of count()) this.set({ kind, status }, value);
    },
  });
  registry.registerMetric(objects);
  return (kind, count) => void counts.set(kind, count);
}

function taskGauges(registry: Registry, tasks: TaskManager): void {
  const gauges = [
    new Gauge({
      name: 'taskflow_working_tasks',
      help: 'Tasks that run or wait for a place.',
      registers: [],
      collect() {
        this.set(tasks.snapshot().working.length);
      },
    }),
    new Gauge({
      name: 'taskflow_cached_results',
      help: 'Results that are not recorded in a status yet.',
      registers: [],
      collect() {
        this.set(tasks.snapshot().results.length);
      },
    }),
  ];
  for (const gauge of gauges) registry.registerMetric(gauge);
}
