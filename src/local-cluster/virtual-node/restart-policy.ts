/** Whether and when a container that ended runs again. */
import { type ContainerRecord, type Terminated, wait } from './container-record.ts';
import type { PodContainer, PodSpec } from './pod-spec.ts';

/** The kubelet's numbers are 10 s and 5 min; the ratio is kept, the base is the node's option. */
export interface RestartBackoff {
  readonly baseMs: number;
  readonly maxMs: number;
}

export function restartBackoff(baseMs: number): RestartBackoff {
  return { baseMs, maxMs: 30 * baseMs };
}

export function restartsAfter({ container, role }: PodContainer, spec: PodSpec, exitCode: number): boolean {
  switch (role) {
    case 'sidecar':
      return true;
    case 'init':
      return exitCode !== 0 && policyAllows(container.restartPolicy ?? spec.restartPolicy, exitCode);
    case 'main':
      return (
        (container.restartPolicyRules ?? []).some(
          ({ action, exitCodes }) => action === 'Restart' && matches(exitCodes, exitCode),
        ) || policyAllows(container.restartPolicy ?? spec.restartPolicy, exitCode)
      );
  }
}

/**
 * Notes the end of a run. If another follows, the record says from when on:
 * at once after the first end, then after ever longer pauses.
 */
export function noteEnd(
  record: ContainerRecord,
  end: Terminated,
  restarts: boolean,
  backoff: RestartBackoff,
  subject: string,
): void {
  record.state = end;
  record.started = false;
  record.ready = false;
  if (!restarts) return;
  // A run that held for long was no part of the loop.
  if (end.finishedAt - end.startedAt > 2 * backoff.maxMs) record.endings = 0;
  const pauseMs = pauseAfter(record.endings++, backoff);
  record.notBefore = end.finishedAt + pauseMs;
  if (pauseMs > 0)
    wait(
      record,
      'CrashLoopBackOff',
      `back-off ${pauseMs / 1000}s restarting failed container=${record.name} pod=${subject}`,
    );
}

export function pauseAfter(earlierEndings: number, { baseMs, maxMs }: RestartBackoff): number {
  return earlierEndings === 0 ? 0 : Math.min(maxMs, baseMs * 2 ** (earlierEndings - 1));
}

function policyAllows(policy: string | undefined, exitCode: number): boolean {
  return policy === 'Never' ? false : policy === 'OnFailure' ? exitCode !== 0 : true;
}

function matches(
  condition: { readonly operator: string; readonly values?: readonly number[] } | undefined,
  exitCode: number,
): boolean {
  if (!condition) return false;
  return (condition.values ?? []).includes(exitCode) === (condition.operator === 'In');
}
