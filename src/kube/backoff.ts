/** Exponential backoff with full jitter: whole herds come back spread out, not in step. */
export interface BackoffRange {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** The wait after so many failures in a row (1 is the first). `random` gives 0 to 1. */
export function jitteredBackoff(failures: number, range: BackoffRange, random: () => number): number {
  const ceiling = Math.min(range.maxMs, range.firstMs * 2 ** Math.min(failures - 1, 30));
  return random() * ceiling;
}
