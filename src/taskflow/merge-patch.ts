/** JSON merge patches (RFC 7386): only what differs is sent, so that fields of others are left alone. */
type Json = Readonly<Record<string, unknown>>;

/** What turns `before` into `after`; undefined if nothing does. */
export function mergePatch(before: Json, after: Json): Json | undefined {
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const change = changeOf(before[key], after[key]);
    if (change !== undefined) patch[key] = change;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/** `target` with the patch in it; neither is changed. */
export function applyMergePatch(target: Json, patch: Json): Record<string, unknown> {
  const result: Record<string, unknown> = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else if (isRecord(value)) {
      const old = result[key];
      result[key] = applyMergePatch(isRecord(old) ? old : {}, value);
    } else if (value !== undefined) result[key] = value;
  }
  return result;
}

/** Null takes the field away, undefined leaves it. */
function changeOf(before: unknown, after: unknown): unknown {
  if (after === undefined || after === null)
    return before === undefined || before === null ? undefined : null;
  if (isRecord(before) && isRecord(after)) return mergePatch(before, after);
  return isEqual(before, after) ? undefined : after;
}

function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, at) => isEqual(item, b[at]));
  return isRecord(a) && isRecord(b) && mergePatch(a, b) === undefined;
}

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
