/** What a benchmark is; adding one is adding a file and naming it in run.ts. */
export interface Row {
  readonly what: string;
  readonly value: number;
  readonly unit: 'ms' | 'x' | 'MB' | '/s' | 'calls';
  /** What the project promises, where it does; a bench that misses it fails. */
  readonly atMost?: number;
  readonly atLeast?: number;
  /** Name of the figure for programs that read it (`--json`). */
  readonly key?: string;
}

export interface BenchOptions {
  /** Shows that the bench works; its figures are not judged. */
  readonly short: boolean;
  /** With what takes minutes. */
  readonly full: boolean;
}

export interface Bench {
  readonly name: string;
  readonly run: (options: BenchOptions) => Promise<Row[]>;
}

export function isMissed({ value, atMost = Infinity, atLeast = -Infinity }: Row): boolean {
  return !(value <= atMost && value >= atLeast);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
