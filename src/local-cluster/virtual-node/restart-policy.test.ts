import { describe, expect, it } from 'vitest';
import { newRecord, type Terminated } from './container-record.ts';
import type { Container, PodSpec, Role } from './pod-spec.ts';
import { noteEnd, pauseAfter, restartBackoff, restartsAfter } from './restart-policy.ts';

const restarts = (
  restartPolicy: string,
  exitCode: number,
  role: Role = 'main',
  container: Partial<Container> = {},
): boolean =>
  restartsAfter(
    { container: { name: 'c', ...container }, role },
    { containers: [], restartPolicy },
    exitCode,
  );

describe('a container that ended', () => {
  it.each([
    ['Always', 0, true],
    ['Always', 1, true],
    ['OnFailure', 0, false],
    ['OnFailure', 1, true],
    ['Never', 0, false],
    ['Never', 1, false],
  ])('with restartPolicy %s and exit code %i runs again: %s', (policy, exitCode, expected) => {
    expect(restarts(policy, exitCode)).toBe(expected);
  });

  it('never runs again as an init container that succeeded', () => {
    expect(restarts('Always', 0, 'init')).toBe(false);
    expect(restarts('Always', 1, 'init')).toBe(true);
    expect(restarts('Never', 1, 'init')).toBe(false);
  });

  it('always runs again as a sidecar', () => {
    expect(restarts('Never', 0, 'sidecar', { restartPolicy: 'Always' })).toBe(true);
  });

  it('follows the rules of its own before those of the Pod', () => {
    const restartPolicyRules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }];
    expect(restarts('Never', 42, 'main', { restartPolicy: 'Never', restartPolicyRules })).toBe(true);
    expect(restarts('Never', 1, 'main', { restartPolicy: 'Never', restartPolicyRules })).toBe(false);
    expect(restarts('Never', 1, 'main', { restartPolicy: 'OnFailure' })).toBe(true);
  });
});

describe('the pause before a restart', () => {
  const spec: PodSpec = { containers: [] };
  const backoff = restartBackoff(1000);
  const end = (ranMs: number): Terminated => ({
    kind: 'terminated',
    exitCode: 1,
    reason: 'Error',
    startedAt: 0,
    finishedAt: ranMs,
  });

  it('is none, then doubles up to its limit', () => {
    expect([0, 1, 2, 3, 5, 6, 20].map((endings) => pauseAfter(endings, backoff))).toEqual([
      0, 1000, 2000, 4000, 16_000, 30_000, 30_000,
    ]);
  });

  it('shows as CrashLoopBackOff, with the end before it', () => {
    const record = newRecord({ container: { name: 'c' }, role: 'main' }, spec, 0);
    noteEnd(record, end(10), true, backoff, 'p_n(u)');
    expect(record).toMatchObject({ state: { kind: 'terminated' }, notBefore: 10 });
    noteEnd(record, end(20), true, backoff, 'p_n(u)');
    expect(record).toMatchObject({
      state: {
        kind: 'waiting',
        reason: 'CrashLoopBackOff',
        message: 'back-off 1s restarting failed container=c pod=p_n(u)',
      },
      last: end(20),
      notBefore: 1020,
    });
  });

  it('is forgotten after a run that held', () => {
    const record = newRecord({ container: { name: 'c' }, role: 'main' }, spec, 0);
    record.endings = 5;
    noteEnd(record, end(100_000), true, backoff, '');
    expect(record.state.kind).toBe('terminated');
    expect(record.notBefore).toBe(100_000);
  });
});
