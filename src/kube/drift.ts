/**
 * Whether an object still is what we applied, without asking the server. Two
 * things are compared. The hash of what we want with the hash that we left in
 * an annotation: it tells when we want something else, fields that we no
 * longer want included. And each field that we want with the same field of the
 * object: it tells when somebody changed it. Fields of others do not count.
 *
 * Lists: entries that are objects with a name (containers, volumes, …) are
 * compared by name, and others may add some; all other lists must be equal.
 */
import { createHash } from 'node:crypto';

export const APPLIED_ANNOTATION = 'taskflow.dev/applied-hash';

/** Equal for equal content, whatever the order of fields. */
export function contentHash(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('base64url').slice(0, 22);
}

/** The part of `actual` that `wanted` speaks about, in the shape of `wanted`. */
export function projection(wanted: unknown, actual: unknown): unknown {
  if (Array.isArray(wanted)) return projectList(wanted, actual);
  if (!isRecord(wanted)) return actual;
  if (!isRecord(actual)) return actual;
  return Object.fromEntries(
    Object.entries(wanted)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key, projection(value, actual[key])]),
  );
}

/** Whether every field of `wanted` has its value in `actual`. */
export function covers(wanted: unknown, actual: unknown): boolean {
  return canonical(projection(wanted, actual)) === canonical(wanted);
}

function projectList(wanted: readonly unknown[], actual: unknown): unknown {
  if (!Array.isArray(actual)) return actual;
  const names = wanted.map(nameOf);
  if (wanted.length === 0 || names.includes(undefined)) {
    if (actual.length !== wanted.length) return actual;
    return wanted.map((item, at) => projection(item, actual[at] as unknown));
  }
  return wanted.map((item) => {
    const partner: unknown = actual.find((candidate) => nameOf(candidate) === nameOf(item));
    return projection(item, partner);
  });
}

function nameOf(item: unknown): string | undefined {
  return isRecord(item) && typeof item['name'] === 'string' ? item['name'] : undefined;
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value) ?? 'null';
  const fields = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${fields.join(',')}}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
