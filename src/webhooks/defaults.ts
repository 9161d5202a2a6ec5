/**
 * Defaults as a JSON patch. The webhook only ever adds: fields that this
 * operator does not know may belong to a newer one, so what zod strips stays.
 */
import { createPatch, type Operation, type Pointer } from 'rfc6902';

/** The object with what `parsed` has and it has not. What it has is kept as it is. */
export function overlayDefaults(original: unknown, parsed: unknown): unknown {
  if (original === undefined) return parsed;
  if (Array.isArray(original) && Array.isArray(parsed)) {
    if (original.length !== parsed.length) return original;
    return original.map((item, index) => overlayDefaults(item, parsed[index]));
  }
  if (!isObject(original) || !isObject(parsed)) return original;
  const kept = Object.entries(original).map(([key, value]) => [
    key,
    Object.hasOwn(parsed, key) ? overlayDefaults(value, parsed[key]) : value,
  ]);
  const added = Object.entries(parsed).filter(
    ([key, value]) => !Object.hasOwn(original, key) && value !== undefined,
  );
  return Object.fromEntries([...kept, ...added]);
}

/** The operations that make `before` into `after`. */
export function patchFrom(before: object, after: object): Operation[] {
  return createPatch(before, after, diffArraysByIndex);
}

/**
 * The library looks for the shortest edit of a list, which takes the square of
 * its length: a list of some ten thousand items would stop the process.
 */
function diffArraysByIndex(before: unknown, after: unknown, pointer: Pointer): Operation[] | undefined {
  if (!Array.isArray(before) || !Array.isArray(after)) return undefined;
  if (before.length !== after.length) return [{ op: 'replace', path: pointer.toString(), value: after }];
  return before.flatMap((item: unknown, index) => {
    const at = pointer.add(String(index));
    return createPatch(item, after[index], diffArraysByIndex).map((operation) => ({
      ...operation,
      path: `${at.toString()}${operation.path}`,
    }));
  });
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
