/** A kind as the engine knows it: its states, the flows that lead between them, and its tasks. */
import type { CacheReader } from './cache-reader.ts';
import type { KindSchema } from '../kube/schema/define-schema.ts';
import type { KubeObject, ResourceType } from '../kube/resource-type.ts';
import type { FlowDef } from './flow-definition.ts';
import type { ManagerInit, ResourceManager } from './resource-manager.ts';
import type { ObserverDef } from './observations.ts';
import type { StatusPatch, TaskDef } from './task-definition.ts';

export interface StateDef<O extends KubeObject = KubeObject> {
  /** What is done in this state; none: it rests. */
  readonly flow?: FlowDef<O> | ((object: O) => FlowDef<O> | undefined);
  /** Compares what is wanted with what is there: the state to go to, or undefined to stay. No I/O. */
  readonly next?: (object: O, cache: CacheReader) => string | undefined;
  /** The object serves its purpose. */
  readonly ready?: boolean;
  /** Somebody has to look. The first such state is where an object is archived. */
  readonly failed?: boolean;
  /** The work of deletion is done: the finalizer may go. */
  readonly deleted?: boolean;
  readonly description?: string;
}

export interface Deletion {
  /** State whose flow cleans up. */
  readonly state: string;
  /** Holds the object until a state with `deleted` is reached. */
  readonly finalizer: string;
}

export interface FlowKind<O extends KubeObject = KubeObject> {
  readonly schema: KindSchema & ResourceType<O>;
  readonly stateField: 'status' | 'phase';
  readonly states: Readonly<Record<string, StateDef<O>>>;
  readonly initial: (object: O) => string;
  readonly failedState: string;
  readonly tasks: ReadonlyMap<string, TaskDef<O>>;
  readonly flows: ReadonlyMap<string, FlowDef<O>>;
  readonly deletion: Deletion | undefined;
  /** A change of the spec leads out of a failed state. */
  readonly retryOnSpecChange: boolean;
  /** Further domains of command annotations, as upstream has them. */
  readonly annotationDomains: readonly string[];
  /** Fields of the status that follow from the caches. No I/O. */
  readonly observe: ((object: O, cache: CacheReader) => StatusPatch<O>) | undefined;
  /** Asked in the background; their answers are in the cache reader. */
  readonly observers: Readonly<Record<string, ObserverDef<O>>>;
  readonly createManager: (init: ManagerInit<O>) => ResourceManager<O>;
}

export function kindName({ schema }: Pick<FlowKind, 'schema'>): string {
  return `${schema.kind}.${schema.group}`;
}
