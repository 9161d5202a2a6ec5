/** From a flow's definition and an object to the record of its run, and back. */
import type { KubeObject } from '../kube/resource-type.ts';
import type { FlowRules, GraphRules } from './advance.ts';
import { DEFAULT_TIMEOUT_MS } from './attempt.ts';
import type { FlowDef, FlowStep, ParallelStep } from './flow-definition.ts';
import { topologicalOrder } from './graph-scheduler.ts';
import type { LiveTask, OperationContext } from './operation-context.ts';
import type { TaskDef } from './task-definition.ts';
import { iso } from './world.ts';

export interface PlanInput<O extends KubeObject> {
  readonly flow: FlowDef<O>;
  readonly object: O;
  /** State of the object now. */
  readonly status: string;
  readonly generation: number;
  readonly now: number;
  readonly flowId: string;
}

/** The flow as it begins: no task is taken yet. */
export function planFlow<O extends KubeObject>(input: PlanInput<O>): OperationContext {
  const { flow, object, status, generation, now, flowId } = input;
  const steps = flow.steps.filter(({ when }) => when?.(object) ?? true);
  const members = steps.flatMap((step) => (step.kind === 'parallel' ? membersOf(step, object) : []));
  return {
    name: flow.name,
    tasks: flow.graph ? topologicalOrder(flow.graph.nodes(object)) : steps.map(stepName),
    task: '',
    idx: 0,
    taskStatus: '',
    taskId: '',
    targetStatus: typeof flow.target === 'string' ? flow.target : '',
    failureRule: {
      failureStrategy: flow.failure.strategy,
      failureStatus: flow.failure.status,
      maxRetry: flow.failure.maxRetry,
    },
    flowId,
    generation,
    startStatus: status,
    startedAt: iso(now),
    ...(flow.deadlineMs !== undefined && { deadline: iso(now + flow.deadlineMs) }),
    ...(members.length > 0 && { running: members }),
  };
}

export function stepName<O extends KubeObject>(step: FlowStep<O>): string {
  return step.kind === 'task' ? step.task.name : step.name;
}

function membersOf<O extends KubeObject>({ name, members }: ParallelStep<O>, object: O): LiveTask[] {
  const names = new Set(members(object).map((member) => member.name));
  return [...names].map((task) => ({
    task,
    taskId: '',
    taskStatus: '',
    step: name,
    attempt: 1,
  }));
}

/** A task as a name in a context stands for it. */
export interface ResolvedTask<O extends KubeObject> {
  readonly task: TaskDef<O>;
  readonly item?: string;
}

export interface ResolvedFlow<O extends KubeObject> extends FlowRules {
  readonly resolve: (name: string) => ResolvedTask<O> | undefined;
  /** Members of its parallel steps, as they are when the flow begins anew. */
  readonly members: () => LiveTask[];
}

/** What the names in a context mean; `flow` is undefined where this release does not know the flow any more. */
export function resolveFlow<O extends KubeObject>(
  context: OperationContext,
  flow: FlowDef<O> | undefined,
  object: O,
  taskByName: (name: string) => TaskDef<O> | undefined,
): ResolvedFlow<O> {
  const nodes = new Map(flow?.graph?.nodes(object).map((node) => [node.id, node]));
  const resolve = (name: string): ResolvedTask<O> | undefined => {
    const node = context.compensating === true ? undefined : nodes.get(name);
    if (node) return { task: node.task, item: name };
    const known = taskByName(name);
    if (known) return { task: known };
    const colon = name.indexOf(':');
    const base = colon < 0 ? undefined : taskByName(name.slice(0, colon));
    return base && { task: base, item: name.slice(colon + 1) };
  };
  const graph = flow?.graph && graphRules(flow.graph, object);
  const steps = flow?.steps ?? [];
  const stepOf = (name: string): FlowStep<O> | undefined =>
    steps.find((step) => stepName(step) === name) ??
    steps.find(
      (step) => step.kind === 'parallel' && step.members(object).some((member) => member.name === name),
    );
  return {
    resolve,
    members: () =>
      steps.flatMap((step) =>
        step.kind === 'parallel' && context.tasks.includes(step.name) ? membersOf(step, object) : [],
      ),
    taskRules: (name) => {
      const task = resolve(name)?.task;
      return (
        task && { timeoutMs: task.timeoutMs ?? DEFAULT_TIMEOUT_MS, onInterrupt: task.onInterrupt ?? 'rerun' }
      );
    },
    parallel: (name) => {
      const step = flow?.steps.find((each) => each.kind === 'parallel' && each.name === name);
      if (step?.kind === 'parallel') return { failFast: step.failFast };
      return context.running?.some((member) => member.step === name) === true
        ? { failFast: false }
        : undefined;
    },
    ...(graph && { graph }),
    undoOf: (name) => (nodes.get(name) ?? stepOf(name))?.compensate?.name,
  };
}

function graphRules<O extends KubeObject>(graph: NonNullable<FlowDef<O>['graph']>, object: O): GraphRules {
  const nodes = graph.nodes(object);
  const { store } = graph;
  return {
    nodes,
    next: (states, canceled) => graph.next(nodes, states, canceled, object),
    ...(store && {
      store: {
        ended: store.ended(object),
        record: (id, state, error) => store.record(object, id, state, error),
      },
    }),
  };
}
