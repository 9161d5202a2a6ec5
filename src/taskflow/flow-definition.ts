/** A flow as its author writes it: steps, where it leads, and what a failure does. */
import type { KubeObject } from '../kube/resource-type.ts';
import type { FailureStrategy } from './operation-context.ts';
import type { StatusPatch, TaskDef } from './task-definition.ts';

export interface TaskStep<O extends KubeObject = KubeObject> {
  readonly kind: 'task';
  readonly task: TaskDef<O>;
  /** Decided when the flow is planned. */
  readonly when?: (object: O) => boolean;
  /** Undoes the step if the flow fails for good or is cancelled. */
  readonly compensate?: TaskDef<O>;
}

export interface ParallelStep<O extends KubeObject = KubeObject> {
  readonly kind: 'parallel';
  /** Its one name in `tasks`. */
  readonly name: string;
  readonly members: (object: O) => readonly ParallelMember<O>[];
  /** The first failure ends the others; default false: they end by themselves. */
  readonly failFast: boolean;
  readonly when?: (object: O) => boolean;
  readonly compensate?: TaskDef<O>;
}

export interface ParallelMember<O extends KubeObject = KubeObject> {
  /** `<task>`, or `<task>:<item>`. */
  readonly name: string;
  readonly task: TaskDef<O>;
  readonly item?: string;
}

export interface GraphNode<O extends KubeObject = KubeObject> extends NodeShape {
  readonly task: TaskDef<O>;
  readonly compensate?: TaskDef<O>;
}

/** `canceled` and `skipped` nodes did not run to their end. */
export type NodeState = 'waiting' | 'live' | 'successful' | 'failed' | 'skipped' | 'canceled';

export interface GraphDecision {
  readonly start: readonly string[];
  readonly skip: readonly string[];
  /** The live nodes are ended. */
  readonly abort?: boolean;
  /** Nothing more will start: how the graph ends when no node lives any more. */
  readonly done?: 'successful' | 'failed';
}

/** What a scheduler sees of a node. */
export interface NodeShape {
  readonly id: string;
  readonly needs?: readonly string[];
}

/** Pure: what may start, given where every node is. */
export type GraphScheduler<O extends KubeObject = KubeObject> = (
  nodes: readonly NodeShape[],
  states: Readonly<Record<string, NodeState>>,
  canceled: boolean,
  object: O,
) => GraphDecision;

/** For kinds that keep the results of nodes in their own status; else the engine has them in `finished`. */
export interface NodeStore<O extends KubeObject = KubeObject> {
  readonly ended: (object: O) => Readonly<Record<string, NodeState>>;
  /** What the end of a node changes of the status. */
  readonly record: (object: O, id: string, state: NodeState, error?: string) => StatusPatch<O>;
}

export interface Graph<O extends KubeObject = KubeObject> {
  /** From what is stored of the object; the same at every call within one flow. */
  readonly nodes: (object: O) => readonly GraphNode<O>[];
  readonly next: GraphScheduler<O>;
  readonly store?: NodeStore<O>;
}

export type FlowStep<O extends KubeObject = KubeObject> = TaskStep<O> | ParallelStep<O>;

export interface FlowFailure {
  readonly strategy: FailureStrategy;
  /** State after a failure. */
  readonly status: string;
  /** 0: the default of the operator. */
  readonly maxRetry: number;
}

export interface FlowDef<O extends KubeObject = KubeObject> {
  readonly name: string;
  readonly steps: readonly FlowStep<O>[];
  readonly graph?: Graph<O>;
  /** Of the status that the last task left, where there are several outcomes. */
  readonly target: string | ((object: O) => string);
  /** Every state that a target function may give. */
  readonly targets: readonly string[];
  readonly failure: FlowFailure;
  readonly deadlineMs?: number;
  /** A deletion cancels the flow; default true. */
  readonly deletePreempts: boolean;
  /** State after a cancel; default the state before the flow. */
  readonly cancelStatus?: string;
}

/** A flow definition with the words to define it further. Each gives a new one. */
export interface FlowBuilder<O extends KubeObject> extends FlowDef<O> {
  step(task: TaskDef<O>, options?: { readonly compensate?: TaskDef<O> }): FlowBuilder<O>;
  stepIf(
    when: (object: O) => boolean,
    task: TaskDef<O>,
    options?: { readonly compensate?: TaskDef<O> },
  ): FlowBuilder<O>;
  parallel(
    name: string,
    tasks: readonly TaskDef<O>[],
    options?: { readonly failFast?: boolean; readonly compensate?: TaskDef<O> },
  ): FlowBuilder<O>;
  /** One member per item, named `<task>:<item>`; the list is taken when the flow is planned. */
  foreach(
    name: string,
    items: (object: O) => readonly string[],
    task: TaskDef<O>,
    options?: { readonly failFast?: boolean; readonly compensate?: TaskDef<O> },
  ): FlowBuilder<O>;
  /** The whole flow is a graph. */
  graphOf(
    nodes: readonly GraphNode<O>[] | ((object: O) => readonly GraphNode<O>[]),
    options?: {
      readonly maxParallel?: number;
      readonly next?: GraphScheduler<O>;
      readonly store?: NodeStore<O>;
    },
  ): FlowBuilder<O>;
  to(target: string): FlowBuilder<O>;
  to(target: (object: O) => string, targets: readonly string[]): FlowBuilder<O>;
  onFailure(
    strategy: FailureStrategy,
    options?: { readonly to?: string; readonly maxRetry?: number },
  ): FlowBuilder<O>;
  deadline(ms: number): FlowBuilder<O>;
  deletionWaits(): FlowBuilder<O>;
  cancelTo(status: string): FlowBuilder<O>;
}
