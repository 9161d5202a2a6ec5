/** One run of a container, whether there is a process behind it or not. */
export interface LiveContainer {
  /** Settles once, after the last line of its log. */
  readonly exited: Promise<RunEnd>;
  /** Asks it to end, and makes it end after the grace period. A later call may shorten the grace. */
  stop(graceMs: number): void;
}

export interface RunEnd {
  readonly exitCode: number;
  readonly reason: string;
  readonly message?: string | undefined;
}

export function endOf(exitCode: number, message?: string): RunEnd {
  return { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error', message };
}
