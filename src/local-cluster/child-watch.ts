/** Waiting for a program to be ready, and noticing when it is not there any more. */
import { systemClock } from '../kube/clock.ts';
import { describeExit, type ManagedProcess } from './processes/managed-process.ts';

/** A program of the control plane ended on its own. Carries the end of its log. */
export class ChildDiedError extends Error {
  constructor(name: string, how: string, logFile: string, logTail: string) {
    super(`${name} ended with ${how}. The end of its log (${logFile}):\n${logTail || '(empty)'}`);
    this.name = 'ChildDiedError';
  }
}

export async function childDied(child: ManagedProcess): Promise<ChildDiedError> {
  const exit = await child.exited;
  return new ChildDiedError(child.name, describeExit(exit), child.logFile, await child.logTail());
}

export interface ReadyOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The programs announce readiness by nothing but an HTTP endpoint, so it is asked often and cheaply. */
const PROBE_INTERVAL_MS = 25;

export async function awaitReady(
  child: ManagedProcess,
  isReady: () => Promise<unknown>,
  { timeoutMs, signal }: ReadyOptions,
): Promise<void> {
  const giveUpAt = Date.now() + timeoutMs;
  let lastError: unknown;
  for (;;) {
    if (child.exit) throw await childDied(child);
    signal?.throwIfAborted();
    try {
      await isReady();
      return;
    } catch (error) {
      lastError = error;
    }
    if (Date.now() > giveUpAt)
      throw new Error(
        `${child.name} runs, but was not ready after ${timeoutMs / 1000} s. The end of its log (${child.logFile}):\n${await child.logTail()}`,
        { cause: lastError },
      );
    await systemClock.sleep(PROBE_INTERVAL_MS, signal);
  }
}
