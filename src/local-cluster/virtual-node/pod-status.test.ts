import { describe, expect, it } from 'vitest';
import { type ContainerRecord, type ContainerState, newRecord, type Terminated } from './container-record.ts';
import { containersOf, type PodSpec, type StoredPod } from './pod-spec.ts';
import { type PodFacts, podPhase, podStatus, statusPatch } from './pod-status.ts';

const NOW = Date.parse('2026-01-01T00:00:00.500Z');
const running: ContainerState = { kind: 'running', startedAt: NOW };
const exited = (exitCode: number): Terminated => ({
  kind: 'terminated',
  exitCode,
  reason: exitCode === 0 ? 'Completed' : 'Error',
  startedAt: NOW,
  finishedAt: NOW,
});
const backOff = (exitCode: number): Partial<ContainerRecord> => ({
  state: { kind: 'waiting', reason: 'CrashLoopBackOff' },
  last: exited(exitCode),
});

function recordsOf(
  spec: PodSpec,
  known: Record<string, Partial<ContainerRecord>>,
): Map<string, ContainerRecord> {
  return new Map(
    containersOf(spec).map((part) => [
      part.container.name,
      { ...newRecord(part, spec, 0), ...known[part.container.name] },
    ]),
  );
}

function podWith(spec: PodSpec, status: NonNullable<StoredPod['status']> = {}): StoredPod {
  return {
    metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1', generation: 2 },
    spec,
    status,
  };
}

function factsOf(pod: StoredPod, known: Record<string, Partial<ContainerRecord>>): PodFacts {
  const records = recordsOf(pod.spec ?? { containers: [] }, known);
  return { pod, records, now: NOW, startTime: NOW, hostIP: '127.0.0.1', podIP: '127.17.1.1' };
}

describe('the phase of a Pod', () => {
  const two: PodSpec = { containers: [{ name: 'a' }, { name: 'b' }] };
  const init: PodSpec = { initContainers: [{ name: 'i' }], containers: [{ name: 'a' }] };
  const sidecar: PodSpec = {
    initContainers: [{ name: 's', restartPolicy: 'Always' }],
    containers: [{ name: 'a' }],
  };

  it.each<[string, PodSpec, string, Record<string, Partial<ContainerRecord>>, string]>([
    ['nothing started', two, 'Always', {}, 'Pending'],
    ['one of two started', two, 'Always', { a: { state: running } }, 'Pending'],
    ['all running', two, 'Always', { a: { state: running }, b: { state: running } }, 'Running'],
    ['one done, one running', two, 'Never', { a: { state: exited(0) }, b: { state: running } }, 'Running'],
    ['all done', two, 'Never', { a: { state: exited(0) }, b: { state: exited(0) } }, 'Succeeded'],
    ['one failed for good', two, 'Never', { a: { state: exited(1) }, b: { state: exited(0) } }, 'Failed'],
    ['one to be retried', two, 'OnFailure', { a: backOff(1), b: { state: exited(0) } }, 'Running'],
    ['all to be restarted', two, 'Always', { a: backOff(0), b: backOff(0) }, 'Running'],
    ['init running', init, 'Always', { i: { state: running } }, 'Pending'],
    ['init in back-off', init, 'Always', { i: backOff(1) }, 'Pending'],
    ['init failed for good', init, 'Never', { i: { state: exited(1) } }, 'Failed'],
    ['init done', init, 'Never', { i: { state: exited(0) }, a: { state: running } }, 'Running'],
    ['sidecar starting', sidecar, 'Always', { s: { state: running } }, 'Pending'],
    [
      'sidecar outlives main',
      sidecar,
      'Never',
      { s: { state: running, started: true }, a: { state: exited(0) } },
      'Running',
    ],
    [
      'sidecar ended too',
      sidecar,
      'Never',
      { s: { state: exited(143) }, a: { state: exited(0) } },
      'Succeeded',
    ],
    ['sidecar restarts', sidecar, 'Always', { s: backOff(1), a: { state: running } }, 'Running'],
  ])('%s (%#)', (_story, spec, restartPolicy, known, expected) => {
    expect(podPhase({ ...spec, restartPolicy }, recordsOf(spec, known))).toBe(expected);
  });

  it('is final when the Pod was ended from outside', () => {
    const always = { ...two, restartPolicy: 'Always' };
    expect(podPhase(always, recordsOf(two, { a: { state: exited(0) }, b: { state: exited(0) } }), {})).toBe(
      'Succeeded',
    );
    expect(podPhase(always, recordsOf(two, { a: { state: exited(143) }, b: { state: exited(0) } }), {})).toBe(
      'Failed',
    );
    expect(podPhase(always, recordsOf(two, {}), {})).toBe('Failed');
    const deadline = { reason: 'DeadlineExceeded' };
    expect(
      podPhase(always, recordsOf(two, { a: { state: exited(0) }, b: { state: exited(0) } }), deadline),
    ).toBe('Failed');
  });
});

describe('the status of a Pod', () => {
  const spec: PodSpec = { containers: [{ name: 'a', image: 'process' }], restartPolicy: 'Always' };
  const ready = { state: running, started: true, ready: true };
  const conditionsOf = (facts: PodFacts): Record<string, string> =>
    Object.fromEntries(
      (podStatus(facts).conditions ?? []).map(({ type, status, reason }) => [
        type,
        reason ? `${status} ${reason}` : status,
      ]),
    );

  it('tells readiness by conditions', () => {
    expect(conditionsOf(factsOf(podWith(spec), { a: ready }))).toEqual({
      PodReadyToStartContainers: 'True',
      Initialized: 'True',
      Ready: 'True',
      ContainersReady: 'True',
      PodScheduled: 'True',
    });
    expect(conditionsOf(factsOf(podWith(spec), { a: { state: running } }))).toMatchObject({
      Ready: 'False ContainersNotReady',
      ContainersReady: 'False ContainersNotReady',
    });
    const never = podWith({ ...spec, restartPolicy: 'Never' });
    expect(conditionsOf(factsOf(never, { a: { state: exited(0) } }))).toMatchObject({
      Initialized: 'True PodCompleted',
      Ready: 'False PodCompleted',
    });
    expect(conditionsOf(factsOf(never, { a: { state: exited(3) } }))).toMatchObject({
      Ready: 'False PodFailed',
    });
  });

  it('waits for readiness gates and init containers', () => {
    const gated = podWith({ ...spec, readinessGates: [{ conditionType: 'example.com/ok' }] });
    expect(conditionsOf(factsOf(gated, { a: ready }))['Ready']).toBe('False ReadinessGatesNotReady');
    const open = podWith(gated.spec ?? spec, { conditions: [{ type: 'example.com/ok', status: 'True' }] });
    expect(conditionsOf(factsOf(open, { a: ready }))['Ready']).toBe('True');
    const init = podWith({ ...spec, initContainers: [{ name: 'i' }] });
    expect(conditionsOf(factsOf(init, {}))['Initialized']).toBe('False ContainersNotInitialized');
  });

  it('keeps the time of a condition that did not change', () => {
    const lastTransitionTime = '2020-01-01T00:00:00Z';
    const pod = podWith(spec, { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime }] });
    const times = (known: Partial<ContainerRecord>): string | undefined =>
      podStatus(factsOf(pod, { a: known })).conditions?.find(({ type }) => type === 'Ready')
        ?.lastTransitionTime;
    expect(times(ready)).toBe(lastTransitionTime);
    expect(times({ state: running })).toBe('2026-01-01T00:00:00Z');
  });

  it('tells how a container ended, and how the run before did', () => {
    const { containerStatuses } = podStatus(
      factsOf(podWith(spec), { a: { ...ready, run: 2, last: exited(3) } }),
    );
    expect(containerStatuses).toEqual([
      {
        name: 'a',
        image: 'process',
        imageID: 'process',
        containerID: 'process://u/a/2',
        ready: true,
        started: true,
        restartCount: 2,
        state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
        lastState: {
          terminated: {
            exitCode: 3,
            reason: 'Error',
            startedAt: '2026-01-01T00:00:00Z',
            finishedAt: '2026-01-01T00:00:00Z',
            containerID: 'process://u/a/1',
          },
        },
      },
    ]);
  });

  it('is written only where it differs', () => {
    const status = podStatus(factsOf(podWith(spec), { a: ready }));
    expect(statusPatch(podWith(spec, status), status)).toBeUndefined();
    const { reason: _, ...cleared } = { ...status, reason: 'x' };
    expect(statusPatch(podWith(spec, { ...status, reason: 'x' }), cleared)).toEqual({
      metadata: { uid: 'u' },
      status: { reason: null },
    });
  });

  it('leaves conditions of others alone, and clears what its own no longer say', () => {
    const foreign = { type: 'example.com/ok', status: 'True' };
    const notReady = { type: 'Ready', status: 'False', reason: 'ContainersNotReady', message: 'm' };
    const wanted = podStatus(factsOf(podWith(spec), { a: ready }));
    const stored = {
      ...wanted,
      conditions: [foreign, notReady, ...(wanted.conditions ?? []).filter(({ type }) => type !== 'Ready')],
    };
    expect(statusPatch(podWith(spec, stored), wanted)).toMatchObject({
      status: { conditions: [{ type: 'Ready', status: 'True', reason: null, message: null }] },
    });
  });
});
