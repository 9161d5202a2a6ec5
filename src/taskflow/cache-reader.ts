/** Reads of a pass: from memory, without waiting. */
import type { Observation } from './observations.ts';
import type { KubeObject, ResourceType, Stored } from '../kube/resource-type.ts';

export interface CacheReader {
  get<T extends KubeObject>(
    type: ResourceType<T>,
    ref: { name: string; namespace?: string },
  ): Stored<T> | undefined;
  /** Objects of the type that this object controls. */
  owned<T extends KubeObject>(type: ResourceType<T>): Stored<T>[];
  /** What an observer of the kind has found out; undefined as long as there is no answer. */
  observed<T>(observer: string): Observation<T> | undefined;
}
