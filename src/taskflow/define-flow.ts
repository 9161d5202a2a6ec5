/** The words that a flow is defined with. */
import type { KubeObject } from '../kube/resource-type.ts';
import { scheduleByNeeds } from './graph-scheduler.ts';
import type { FlowBuilder, FlowDef, FlowStep, ParallelMember } from './flow-definition.ts';
import type { TaskDef } from './task-definition.ts';

/** As ob-operator's builder has them. */
const DEFAULTS = {
  target: 'running',
  failure: { strategy: 'retry over', status: 'failed', maxRetry: 32 },
} as const;

/** A flow of these tasks, in this order, that leads to `running` unless told otherwise. */
export function defineFlow<O extends KubeObject>(
  name: string,
  tasks: readonly TaskDef<O>[] = [],
): FlowBuilder<O> {
  if (!/^\S(.*\S)?$/.test(name))
    throw new Error(`a flow's name must not be empty or begin with a space: "${name}"`);
  return builder<O>({
    name,
    steps: tasks.map((task) => ({ kind: 'task', task })),
    target: DEFAULTS.target,
    targets: [DEFAULTS.target],
    failure: DEFAULTS.failure,
    deletePreempts: true,
  });
}

function builder<O extends KubeObject>(flow: FlowDef<O>): FlowBuilder<O> {
  const change = (changes: Partial<FlowDef<O>>): FlowBuilder<O> => builder({ ...flow, ...changes });
  const add = (step: FlowStep<O>): FlowBuilder<O> => change({ steps: [...flow.steps, step] });
  return {
    ...flow,
    step: (task, options = {}) => add({ kind: 'task', task, ...options }),
    stepIf: (when, task, options = {}) => add({ kind: 'task', task, when, ...options }),
    parallel: (name, tasks, { failFast = false, ...options } = {}) =>
      add({
        kind: 'parallel',
        name,
        failFast,
        members: () => tasks.map((task) => ({ name: task.name, task })),
        ...options,
      }),
    foreach: (name, items, task, { failFast = false, ...options } = {}) =>
      add({
        kind: 'parallel',
        name,
        failFast,
        members: (object) => items(object).map((item): ParallelMember<O> => memberOf(task, item)),
        ...options,
      }),
    graphOf: (nodes, { maxParallel, next = scheduleByNeeds(maxParallel), store } = {}) =>
      change({
        graph: {
          nodes: typeof nodes === 'function' ? nodes : () => nodes,
          next,
          ...(store && { store }),
        },
      }),
    to: (target: FlowDef<O>['target'], targets?: readonly string[]) =>
      change({ target, targets: typeof target === 'string' ? [target] : (targets ?? []) }),
    onFailure: (strategy, { to = flow.failure.status, maxRetry = flow.failure.maxRetry } = {}) =>
      change({ failure: { strategy, status: to, maxRetry } }),
    deadline: (deadlineMs) => change({ deadlineMs }),
    deletionWaits: () => change({ deletePreempts: false }),
    cancelTo: (cancelStatus) => change({ cancelStatus }),
  };
}

function memberOf<O extends KubeObject>(task: TaskDef<O>, item: string): ParallelMember<O> {
  return { name: `${task.name}:${item}`, task, item };
}
