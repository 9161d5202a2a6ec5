/**
 * Which changes concern a handler. The built-in ones judge updates by what
 * differs; additions, deletions and resyncs always pass, since nobody who
 * filters updates wants to miss those.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Change } from './change.ts';
import type { KubeObject, Stored } from './resource-type.ts';

export type Predicate<T extends KubeObject = KubeObject> = (change: Change<T>) => boolean;

/** The spec changed. (Of kinds without a generation, like ConfigMaps: anything.) */
export const generationChanged: Predicate = differs(
  ({ metadata }) => metadata.generation ?? metadata.resourceVersion,
);

export const labelsChanged: Predicate = differs(({ metadata }) => metadata.labels ?? {});

export const annotationsChanged: Predicate = differs(({ metadata }) => metadata.annotations ?? {});

export const finalizersChanged: Predicate = differs(({ metadata }) => metadata.finalizers ?? []);

/** Somebody asked for its deletion. */
export const deletionStarted: Predicate = differs(({ metadata }) => metadata.deletionTimestamp !== undefined);

/** Not the mere event of a write of ours. */
export const notOwn: Predicate = ({ own }) => !own;

/**
 * One of these fields changed. `status.phase`, `status.conditions`; a part with
 * dots in brackets: `metadata.annotations[example.org/size]`.
 */
export function fieldsChanged(paths: readonly string[]): Predicate {
  const parsed = paths.map(parsePath);
  return differs((object) => parsed.map((path) => valueAt(object, path)));
}

export function and<T extends KubeObject>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (change) => predicates.every((predicate) => predicate(change));
}

export function or<T extends KubeObject>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (change) => predicates.some((predicate) => predicate(change));
}

export function not<T extends KubeObject>(predicate: Predicate<T>): Predicate<T> {
  return (change) => !predicate(change);
}

function differs(aspect: (object: Stored) => unknown): Predicate {
  return (change) =>
    change.type !== 'updated' ||
    change.origin === 'resync' ||
    !isDeepStrictEqual(aspect(change.old), aspect(change.object));
}

/** `a.b[c.d].e` → a, b, c.d, e */
export function parsePath(path: string): readonly string[] {
  const parts = [...path.matchAll(/\[([^\]]+)\]|([^.[\]]+)/g)].map(
    ([, bracketed, plain]) => bracketed ?? plain ?? '',
  );
  if (parts.length === 0) throw new Error(`"${path}" is no path of a field; write it like status.phase`);
  return parts;
}

export function valueAt(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const part of path) {
    if (typeof at !== 'object' || at === null) return undefined;
    at = (at as Record<string, unknown>)[part];
  }
  return at;
}
