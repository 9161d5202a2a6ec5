/** From a schema, a table of states and a set of tasks to a kind that the operator runs. */
import type { KindObject, KindSchema, ObjectOf } from '../kube/schema/define-schema.ts';
import type { RbacRule } from '../kube/schema/rbac.ts';
import type { KubeObject, ResourceType } from '../kube/resource-type.ts';
import type { CacheReader } from '../taskflow/cache-reader.ts';
import type { FlowDef, FlowStep } from '../taskflow/flow-definition.ts';
import { type Deletion, type FlowKind, type StateDef } from '../taskflow/flow-kind.ts';
import type { ManagerInit, ResourceManager } from '../taskflow/resource-manager.ts';
import type { ObserverDef } from '../taskflow/observations.ts';
import type { StatusPatch, TaskDef, TaskHub } from '../taskflow/task-definition.ts';
import type { WebhookRules } from '../webhooks/rules.ts';
import { BaseResourceManager } from './base-resource-manager.ts';
import { flowControl } from './flow-control.ts';
import type { OperatorKind } from './kind.ts';

/** Objects of another type that wake an object of this kind when they change. */
export interface WatchDef {
  readonly type: ResourceType;
  /** Only changes of these fields: `status.phase`; all where left out. */
  readonly on?: readonly string[];
  /** Keys of the objects to wake; default the one that controls it. */
  readonly map?: (object: KubeObject) => readonly string[];
}

export interface KindOptions<O extends KindObject> {
  readonly states: Readonly<Record<string, StateDef<O>>>;
  /** The first state; default the first one that is listed. */
  readonly initial?: string | ((object: O) => string);
  readonly tasks: TaskHub<O>;
  /** Flows that no state names, such as those that a state's function chooses. */
  readonly flows?: readonly FlowDef<O>[];
  readonly stateField?: 'status' | 'phase';
  readonly deletion?: Deletion;
  readonly retryOnSpecChange?: boolean;
  readonly annotationDomains?: readonly string[];
  readonly observe?: (object: O, cache: CacheReader) => StatusPatch<O>;
  /** Slow questions, such as those to a database, that `observe` and `next` read the answers of. */
  readonly observers?: Readonly<Record<string, ObserverDef<O>>>;
  readonly owns?: readonly WatchDef[];
  readonly rbac?: readonly RbacRule[];
  readonly webhook?: WebhookRules<O>;
  /** Extends BaseResourceManager where a table is not enough. */
  readonly manager?: new (init: ManagerInit<O>) => ResourceManager<O>;
}

/** A kind of the operator that has flows. */
export interface DefinedKind extends OperatorKind {
  readonly flowKind: FlowKind<never>;
}

export function defineKind<S extends KindSchema>(schema: S, options: KindOptions<ObjectOf<S>>): DefinedKind {
  type O = ObjectOf<S>;
  const { states, tasks, rbac = [], webhook, owns = [] } = options;
  const [firstState = ''] = Object.keys(states);
  const { initial = firstState } = options;
  const Manager = options.manager ?? BaseResourceManager<O>;
  const flows = flowsOf(schema.kind, states, options.flows ?? []);
  const flowKind: FlowKind<O> = {
    schema: schema as unknown as FlowKind<O>['schema'],
    stateField: options.stateField ?? (Object.hasOwn(schema.status.shape, 'phase') ? 'phase' : 'status'),
    states,
    initial: typeof initial === 'function' ? initial : () => initial,
    failedState: Object.entries(states).find(([, { failed }]) => failed === true)?.[0] ?? 'failed',
    tasks: tasksByName(schema.kind, [
      ...Object.values<TaskDef<O>>(tasks),
      ...[...flows.values()].flatMap(tasksIn),
    ]),
    flows,
    deletion: options.deletion,
    retryOnSpecChange: options.retryOnSpecChange ?? false,
    annotationDomains: options.annotationDomains ?? [],
    observe: options.observe,
    observers: options.observers ?? {},
    createManager: (init) => new Manager(init),
  };
  return {
    schema,
    rbac,
    ...(webhook && { webhook: webhook }),
    control: (context) => flowControl(flowKind, owns, context),
    flowKind: flowKind as unknown as FlowKind<never>,
  };
}

function flowsOf<O extends KubeObject>(
  kind: string,
  states: Readonly<Record<string, StateDef<O>>>,
  others: readonly FlowDef<O>[],
): Map<string, FlowDef<O>> {
  const inStates = Object.values(states).flatMap(({ flow }) => (typeof flow === 'object' ? [flow] : []));
  const flows = new Map<string, FlowDef<O>>();
  for (const flow of new Set([...inStates, ...others])) {
    if (flows.has(flow.name)) throw new Error(`${kind}: two flows have the name "${flow.name}"`);
    flows.set(flow.name, flow);
  }
  return flows;
}

/** Two tasks of one name could not be told apart in a status. */
function tasksByName<O extends KubeObject>(
  kind: string,
  tasks: readonly TaskDef<O>[],
): Map<string, TaskDef<O>> {
  const byName = new Map<string, TaskDef<O>>();
  for (const task of new Set(tasks)) {
    if (byName.has(task.name)) throw new Error(`${kind}: two tasks have the name "${task.name}"`);
    if (task.name.includes(':'))
      throw new Error(`${kind}: the name of task "${task.name}" must have no colon`);
    byName.set(task.name, task);
  }
  return byName;
}

/** Tasks that a flow names itself; members of `foreach` and nodes are known only with an object. */
function tasksIn<O extends KubeObject>({ steps }: FlowDef<O>): TaskDef<O>[] {
  return steps.flatMap((step: FlowStep<O>) => [
    ...(step.kind === 'task' ? [step.task] : []),
    ...(step.compensate ? [step.compensate] : []),
  ]);
}
