/** Common ways to find objects; see ObjectStore.byIndex. */
import type { Indexer } from './object-store.ts';
import type { KubeObject } from './resource-type.ts';

/** By the uid of each owner. */
export function ownerUid<T extends KubeObject>(): Indexer<T> {
  return ({ metadata }) => (metadata.ownerReferences ?? []).map(({ uid }) => uid);
}

/** By the uid of the one owner that controls it. */
export function controllerUid<T extends KubeObject>(): Indexer<T> {
  return ({ metadata }) =>
    (metadata.ownerReferences ?? []).filter(({ controller }) => controller).map(({ uid }) => uid);
}

/** By the value of a label. */
export function labelValue<T extends KubeObject>(label: string): Indexer<T> {
  return ({ metadata }) => {
    const value = metadata.labels?.[label];
    return value === undefined ? [] : [value];
  };
}
