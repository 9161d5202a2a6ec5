/**
 * What the coordinator asks of a kind, object by object: ob-operator's
 * interface. A manager lives for one pass and works on a draft of the status;
 * nothing is stored before the coordinator stores it.
 */
import type { KubeObject, ObjectMeta, Stored } from '../kube/resource-type.ts';
import type { CacheReader } from './cache-reader.ts';
import type { FlowCatalogue } from './flow-catalogue.ts';
import type { FlowKind } from './flow-kind.ts';
import type { OperationContext } from './operation-context.ts';
import type { ResolvedFlow } from './plan.ts';
import type { TaskFn } from './task-definition.ts';
import type { Effect, World } from './world.ts';

/** A flow of an object: its record, and what the names in it mean. */
export interface TaskFlow<O extends KubeObject> {
  readonly context: OperationContext;
  readonly rules: ResolvedFlow<O>;
}

export interface ManagerInit<O extends KubeObject> {
  readonly kind: FlowKind<O>;
  readonly object: Stored<O>;
  readonly catalogue: FlowCatalogue;
  readonly cache: CacheReader;
  readonly world: World;
  readonly removeFinalizer: (finalizer: string) => Promise<void>;
}

export interface ResourceManager<O extends KubeObject = KubeObject> {
  /** The object with the draft of its status. */
  readonly object: Stored<O>;
  /** What is to be done once the draft is stored. */
  readonly effects: Effect[];
  /** When to look again, if nothing happens before; Infinity if there is no such moment. */
  readonly wakeAt: number;
  isNewResource(): boolean;
  isDeleting(): boolean;
  getMeta(): ObjectMeta;
  getStatus(): string;
  setState(state: string): void;
  /** Merges fields that a task returned into the draft. */
  patchStatus(patch: object): void;
  initStatus(): void;
  /** The flow under way, else the one that the state asks for; null when there is nothing to do. */
  getTaskFlow(): TaskFlow<O> | null;
  setOperationContext(context: OperationContext | null): void;
  getTaskFunc(name: string): TaskFn<O>;
  /** The flow has no tasks. */
  clearTaskInfo(): void;
  /** All tasks have succeeded. */
  finishTask(): void;
  /** A task has failed and is recorded in the context. */
  handleFailure(): void;
  /** The flow was cancelled, and nothing of it runs any more. */
  handleCancel(): void;
  /** Observed fields, and the next state where there is a difference between wanted and observed. */
  updateStatus(): Promise<void>;
  checkAndUpdateFinalizers(): Promise<void>;
  printErrEvent(error: Error): void;
  /** Gives up: the failed state, without a flow. */
  archiveResource(): void;
}
