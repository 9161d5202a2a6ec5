/** Durations as Go writes them: `300ms`, `1h30m`, `1.5s`. */
const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  us: 1e-3,
  µs: 1e-3,
  ns: 1e-6,
};
const PART = /(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/gy;

/** Undefined where the text is no duration. A bare number is milliseconds; only `0` may do without a unit in text. */
export function durationMs(value: string | number): number | undefined {
  if (typeof value === 'number') return value >= 0 ? value : undefined;
  if (value === '0') return 0;
  const parts = [...value.matchAll(PART)];
  if (parts.length === 0 || parts.map(([whole]) => whole).join('') !== value) return undefined;
  return parts.reduce((sum, [, amount = '0', unit = 'ms']) => sum + Number(amount) * (UNIT_MS[unit] ?? 0), 0);
}
