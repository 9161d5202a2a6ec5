import { describe, expect, it } from 'vitest';
import { type ContainerRecord, type ContainerState, newRecord } from './container-record.ts';
import { planPod } from './pod-plan.ts';
import { containersOf, type PodSpec } from './pod-spec.ts';

const running: ContainerState = { kind: 'running', startedAt: 0 };
const exited = (exitCode: number): ContainerState => ({
  kind: 'terminated',
  exitCode,
  reason: '',
  startedAt: 0,
  finishedAt: 0,
});

function plan(
  spec: PodSpec,
  known: Record<string, Partial<ContainerRecord>>,
  { initialised = false, now = 1000 } = {},
): { start: string[]; initialised: boolean; finished: boolean; wakeAt: number | undefined } {
  const records = new Map(
    containersOf(spec).map((part) => [
      part.container.name,
      { ...newRecord(part, spec, 0), ...known[part.container.name] },
    ]),
  );
  const result = planPod(spec, records, initialised, now);
  return { ...result, start: result.start.map(({ container }) => container.name) };
}

describe('the plan of a Pod', () => {
  const plain: PodSpec = { restartPolicy: 'OnFailure', containers: [{ name: 'a' }, { name: 'b' }] };

  it('starts all main containers at once', () => {
    expect(plan(plain, {})).toMatchObject({ start: ['a', 'b'], initialised: true, finished: false });
  });

  it('starts again what failed, not before its time', () => {
    const known = { a: { state: exited(1) }, b: { state: exited(0) } };
    expect(plan(plain, known).start).toEqual(['a']);
    const later = { ...known, a: { state: exited(1), notBefore: 3000 } };
    expect(plan(plain, later)).toMatchObject({ start: [], wakeAt: 3000 });
    expect(plan(plain, later, { now: 3000 }).start).toEqual(['a']);
  });

  it('is finished when nothing will run again', () => {
    expect(plan(plain, { a: { state: exited(0) }, b: { state: exited(0) } }).finished).toBe(true);
    expect(
      plan({ ...plain, restartPolicy: 'Never' }, { a: { state: exited(1) }, b: { state: running } }).finished,
    ).toBe(false);
  });

  const withInit: PodSpec = {
    restartPolicy: 'Never',
    initContainers: [{ name: 'first' }, { name: 'proxy', restartPolicy: 'Always' }, { name: 'second' }],
    containers: [{ name: 'main' }],
  };
  const first = { state: exited(0) };
  const proxy = { state: running, started: true };

  it('runs init containers in order, and goes on past a sidecar once it has started', () => {
    expect(plan(withInit, {}).start).toEqual(['first']);
    expect(plan(withInit, { first: { state: running } })).toMatchObject({ start: [], initialised: false });
    expect(plan(withInit, { first })).toMatchObject({ start: ['proxy'], initialised: false });
    expect(plan(withInit, { first, proxy: { state: running } }).start).toEqual([]);
    expect(plan(withInit, { first, proxy }).start).toEqual(['second']);
    expect(plan(withInit, { first, proxy, second: { state: exited(0) } })).toMatchObject({
      start: ['main'],
      initialised: true,
    });
  });

  it('restarts a sidecar beside the main containers', () => {
    const known = { first, proxy: { state: exited(1) }, second: first, main: { state: running } };
    expect(plan(withInit, known, { initialised: true }).start).toEqual(['proxy']);
  });

  it('is finished when an init container failed for good', () => {
    expect(plan(withInit, { first: { state: exited(1) } }).finished).toBe(true);
    expect(plan({ ...withInit, restartPolicy: 'Always' }, { first: { state: exited(1) } })).toMatchObject({
      start: ['first'],
      finished: false,
    });
  });

  it('is finished with the main containers: sidecars do not keep a Pod', () => {
    const known = { first, proxy, second: first, main: { state: exited(0) } };
    expect(plan(withInit, known, { initialised: true }).finished).toBe(true);
  });
});
