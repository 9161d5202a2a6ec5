/** What a benchmark is; adding one is adding a file and naming it in run.ts. */
export interface Row {
  readonly what: string;
  readonly value: number;
  readonly unit: 'ms' | 'x';
  /** What the project promises, where it does; a bench that misses it fails. */
  readonly atMost?: number;
}

export interface Bench {
  readonly name: string;
  readonly run: (options: { readonly short: boolean }) => Promise<Row[]>;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
