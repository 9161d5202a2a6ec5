/** The form in which objects are kept: without what only the API server and kubectl need. */
import type { KubeObject, Stored } from './resource-type.ts';

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * A copy as deep as what is taken out: the field owners and kubectl's copy of
 * the object are more than half of its size. Rebuilt rather than deleted from,
 * since `delete` turns an object into a slow and large dictionary.
 */
export function strippedOf<T extends KubeObject>(object: Stored<T>): Stored<T> {
  const { managedFields, annotations, ...others } = object.metadata;
  if (managedFields === undefined && annotations?.[LAST_APPLIED] === undefined) return object;
  if (annotations === undefined) return { ...object, metadata: others };
  const { [LAST_APPLIED]: _, ...kept } = annotations;
  return { ...object, metadata: { ...others, annotations: kept } };
}

export function deepFreeze<T extends object>(value: T): T {
  if (Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) deepFreeze(part);
  return value;
}
