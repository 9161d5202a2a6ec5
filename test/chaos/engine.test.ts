/**
 * The engine in operators of their own processes, killed, frozen, cut off and
 * lied to. Whatever happens, a flow must go on from what is stored, and the
 * tasks' own journal must agree with the history of the status.
 * TASKFLOW_CHAOS_KILLS and TASKFLOW_CHAOS_SEED say how often an operator is
 * killed at random, and when; TASKFLOW_CHAOS_SECONDS how long watches break.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { events } from '../../src/kube/builtin-resources.ts';
import { seededRandom } from '../support/fault-proxy/faults.ts';
import { errand, JOB, STEPS } from '../fixtures/journal/errand.ts';
import type { TaskLine } from '../fixtures/journal/journal.ts';
import type { FaultProxy } from '../support/fault-proxy.ts';
import { breaches } from './engine-invariants.ts';
import { EngineStage, type Scene } from './engine-stage.ts';

const KILLS = Number(process.env['TASKFLOW_CHAOS_KILLS'] ?? 12);
const SEED = Number(process.env['TASKFLOW_CHAOS_SEED'] ?? 20_301);
const SECONDS = Number(process.env['TASKFLOW_CHAOS_SECONDS'] ?? 20);
const SOON = { timeout: 60_000, interval: 50 };
/** Short, so that a test need not wait for the end of a real lease. */
const LEASE = {
  'leaderElection.leaseDuration': '4s',
  'leaderElection.renewDeadline': '3s',
  'leaderElection.retryPeriod': '500ms',
};
const LEASE_MS = 4_000;
const SLACK_MS = 3_000;

let stage: EngineStage;
beforeAll(async () => {
  stage = await EngineStage.open();
});
afterAll(() => stage[Symbol.asyncDispose]());

const named = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${prefix}-${at + 1}`);

/** Every errand is done, with all that its tasks have left, and nothing happened that must not. */
async function expectDone(scene: Scene, names: readonly string[], expected: { round?: number } = {}) {
  const { round = 1 } = expected;
  await vi.waitFor(() => {
    const newest = scene.newest;
    const open = names.filter((name) => {
      const { status } = newest.get(name) ?? {};
      return status?.status !== 'done' || status.round !== round;
    });
    expect(open).toEqual([]);
  }, SOON);
  for (const name of names) {
    const { status } = scene.newest.get(name) ?? {};
    expect(status?.trail?.filter((step) => step !== JOB)).toEqual([...STEPS]);
    expect(status?.operationHistory?.map(({ result }) => result)).toEqual(Array(round).fill('Succeeded'));
    // No attempt counts as failed: what was interrupted goes on as the same attempt.
    expect(status?.operationHistory?.[0]?.tasks.map(({ attempts }) => attempts)).toEqual(
      status?.trail?.map(() => 1),
    );
    expect(status?.operationContext).toBeUndefined();
    expect(status?.consecutiveFailures).toBeUndefined();
  }
  expect(breaches(scene.journal.lines, scene.versions)).toEqual([]);
}

function starts(scene: Scene, name: string, task?: string): TaskLine[] {
  return scene.journal.taskLines.filter(
    (line) =>
      line.phase === 'start' &&
      line.object === `${scene.namespace}/${name}` &&
      (task === undefined || line.task === task),
  );
}

const startOf =
  (task: string) =>
  (line: TaskLine): boolean =>
    line.phase === 'start' && line.task === task;

const statusPath = (name: string): RegExp => new RegExp(`/errands/${name}/status$`);

/** True for the n-th request that is asked about. */
const nth = (n: number): (() => boolean) => {
  let seen = 0;
  return () => ++seen === n;
};

async function interruptions(scene: Scene): Promise<number> {
  const { items } = await scene.admin.list(events, { namespace: scene.namespace });
  return items.filter(({ reason }) => reason === 'TaskInterrupted').length;
}

describe('an operator with flows that is killed', { timeout: 240_000 + KILLS * 5_000 }, () => {
  it('engine #4: inside a task: the same attempt runs again, and nothing counts as a failure', async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    const first = await scene.startAndWait(proxy);
    await scene.create('held', { holdAt: 'cross' });
    await scene.journal.until(startOf('cross'));
    await scene.kill(first);
    await scene.startAndWait(proxy);
    await expectDone(scene, ['held']);
    expect(starts(scene, 'held').map(({ task, attempt }) => `${task} ${attempt}`)).toEqual([
      'pack 1',
      'depart 1',
      'cross 1',
      'cross 1',
      'arrive 1',
      'report 1',
    ]);
    await vi.waitFor(async () => expect(await interruptions(scene)).toBe(1), SOON);
  });

  it('engine #4: before and after every status write, and inside every task, all at once', async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    const first = await scene.startAndWait(proxy);
    // The first write begins the flow, each further one settles a task and claims the next, the last one ends it.
    const writes = STEPS.length + 1;
    const before = named('before', writes);
    const after = named('after', writes);
    const inside = named('inside', STEPS.length);
    const held = [
      ...before.map((name, at) => holdWrite(proxy, name, at + 1, 'before')),
      ...after.map((name, at) => holdWrite(proxy, name, at + 1, 'after')),
    ];
    await Promise.all([...before, ...after].map((name) => scene.create(name)));
    await Promise.all(inside.map((name, at) => scene.create(name, { holdAt: STEPS[at] ?? '' })));
    await vi.waitFor(() => expect(held.map(({ isHeld }) => isHeld())).not.toContain(false), SOON);
    await vi.waitFor(() => {
      const last = inside.map((name) => starts(scene, name).at(-1)?.task);
      expect(last).toEqual([...STEPS]);
    }, SOON);
    await scene.kill(first);
    proxy.clear();
    await scene.startAndWait(proxy);
    await expectDone(scene, [...before, ...after, ...inside]);
    // Write n + 1 carries the result of task n: lost before it, stored after it.
    for (const [at, task] of STEPS.entries()) {
      expect(starts(scene, before[at + 1] ?? '', task)).toHaveLength(2);
      expect(starts(scene, after[at + 1] ?? '', task)).toHaveLength(1);
      expect(starts(scene, inside[at] ?? '', task)).toHaveLength(2);
    }
    expect(starts(scene, before[0] ?? '')).toHaveLength(STEPS.length);
    expect(starts(scene, after[0] ?? '')).toHaveLength(STEPS.length);
  });

  it(`engine #4: at ${KILLS} random moments (TASKFLOW_CHAOS_SEED=${SEED})`, async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    const random = seededRandom(SEED);
    const names = named('busy', 20);
    // Long enough that flows are under way until the last kill.
    const rounds = Math.max(1, Math.ceil(KILLS / 10));
    for (const name of names)
      await scene.create(name, { taskMs: Math.round(20 + 400 * random()), withJob: true });
    for (let kill = 0; kill < KILLS; kill++) {
      const operator = await scene.startAndWait(proxy);
      await delay(1_200 * random());
      await scene.kill(operator);
      const round = 1 + Math.floor((rounds * (kill + 1)) / KILLS);
      await Promise.all(names.map((name) => askForRound(scene, name, Math.min(round, rounds))));
    }
    await scene.startAndWait(proxy);
    await vi.waitFor(() => {
      const rest = names.filter((name) => scene.newest.get(name)?.status?.round !== rounds);
      expect(rest).toEqual([]);
    }, SOON);
    expect(breaches(scene.journal.lines, scene.versions)).toEqual([]);
    const jobs = scene.journal.taskLines.filter(({ phase }) => phase === 'job');
    expect(new Set(jobs.map(({ flowId }) => flowId)).size).toBe(jobs.length);
    for (const name of names)
      expect(
        scene.newest.get(name)?.status?.operationHistory?.every(({ result }) => result === 'Succeeded'),
      ).toBe(true);
  });

  it('engine #5: while a job outside runs: it is found again, and no second one is made', async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    const first = await scene.startAndWait(proxy);
    await scene.create('with-job', { withJob: true, holdAt: JOB });
    await scene.journal.until(startOf(JOB));
    await scene.kill(first);
    await scene.startAndWait(proxy);
    await expectDone(scene, ['with-job']);
    const phases = scene.journal.taskLines.filter(({ task }) => task === JOB).map(({ phase }) => phase);
    expect(phases).toEqual(['job', 'start', 'reattach', 'start', 'end']);
  });
});

/** Asks for another flow, unless the errand is there already. */
async function askForRound(scene: Scene, name: string, round: number): Promise<void> {
  await scene.admin.patch(
    errand,
    { name, namespace: scene.namespace },
    { kind: 'merge', body: { spec: { round } } },
  );
}

/** Holds the n-th status write of an errand: it does not arrive, or its answer does not. */
function holdWrite(
  proxy: FaultProxy,
  name: string,
  n: number,
  when: 'before' | 'after',
): { isHeld: () => boolean } {
  const path = statusPath(name);
  proxy.inject({ kind: 'half-open', when, method: 'PATCH', path, where: nth(n), times: 1 });
  const isHeld = (): boolean =>
    proxy.requests.some(
      (request) =>
        request.fault === 'half-open' &&
        path.test(request.path) &&
        (when === 'before' || request.status === 200),
    );
  return { isHeld };
}

describe('an operator with flows that the API server fails', { timeout: 180_000 }, () => {
  it('engine #2: status writes fail for 10 s: the task starts once, after the first good write', async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    await scene.startAndWait(proxy);
    proxy.inject({ kind: 'status', code: 500, method: 'PATCH', path: statusPath('late') });
    await scene.create('late');
    await delay(10_000);
    expect(starts(scene, 'late')).toEqual([]);
    proxy.clear();
    await expectDone(scene, ['late']);
    expect(starts(scene, 'late')).toHaveLength(STEPS.length);
  });

  it('engine #3: the write after a task fails, or its answer is lost: the task does not run again', async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    await scene.startAndWait(proxy);
    const method = 'PATCH';
    // The third write settles the second task; where it fails, the next tries are further writes.
    const fromThird = (): (() => boolean) => {
      let seen = 0;
      return () => ++seen >= 3;
    };
    const faults = [
      proxy.inject({
        kind: 'status',
        code: 500,
        times: 3,
        method,
        path: statusPath('refused'),
        where: fromThird(),
      }),
      proxy.inject({
        kind: 'reset',
        when: 'before',
        times: 3,
        method,
        path: statusPath('cut'),
        where: fromThird(),
      }),
      proxy.inject({
        kind: 'reset',
        when: 'after',
        times: 3,
        method,
        path: statusPath('unheard'),
        where: fromThird(),
      }),
    ];
    const names = ['refused', 'cut', 'unheard'];
    for (const name of names) await scene.create(name);
    await expectDone(scene, names);
    expect(faults.map(({ hits }) => hits)).toEqual([3, 3, 3]);
    for (const name of names) expect(starts(scene, name)).toHaveLength(STEPS.length);
  });

  it('storms of 409, 429 and 500 while others write the same objects', async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    await scene.startAndWait(proxy);
    const write = { method: ['PATCH', 'PUT', 'POST'], path: /errands/ };
    proxy.inject({ ...write, kind: 'status', code: 409, probability: 0.25, seed: SEED });
    proxy.inject({ ...write, kind: 'status', code: 500, probability: 0.15, seed: SEED + 1 });
    proxy.inject({
      ...write,
      kind: 'status',
      code: 429,
      retryAfterSeconds: 1,
      probability: 0.05,
      seed: SEED + 2,
    });
    proxy.inject({ ...write, kind: 'reset', when: 'after', probability: 0.1, seed: SEED + 3 });
    const names = named('stormy', 10);
    for (const name of names) await scene.create(name, { taskMs: 30 });
    for (let round = 0; round < 40; round++) {
      const name = names[round % names.length] ?? '';
      const labels = { round: String(round) };
      await scene.admin.patch(
        errand,
        { name, namespace: scene.namespace },
        { kind: 'merge', body: { metadata: { labels } } },
      );
      await delay(50);
    }
    await delay(3_000);
    proxy.clear();
    await expectDone(scene, names);
    for (const name of names) expect(starts(scene, name)).toHaveLength(STEPS.length);
  });

  it('the API server is killed and comes back in the middle of flows', async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    await scene.startAndWait(proxy);
    const names = named('during', 10);
    for (const name of names) await scene.create(name, { taskMs: 300 });
    await scene.journal.until(startOf('depart'));
    await stage.cluster.restartApiServer();
    await expectDone(scene, names);
    for (const name of names) expect(starts(scene, name)).toHaveLength(STEPS.length);
  });

  it(`engine #29: watches break every second for ${SECONDS / 2} s: no change is missed, no flow runs twice`, async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    await scene.startAndWait(proxy);
    const names = named('watched', 5);
    for (const name of names) await scene.create(name, { taskMs: 20 });
    await expectDone(scene, names);
    const drops = Math.round(SECONDS / 2);
    const rounds = 1 + Math.min(6, Math.floor(drops / 2));
    for (let drop = 0; drop < drops; drop++) {
      proxy.dropWatches();
      const round = Math.min(rounds, 1 + Math.floor(((drop + 1) * (rounds - 1)) / drops));
      await Promise.all(names.map((name) => askForRound(scene, name, round)));
      await delay(1_000);
    }
    await vi.waitFor(() => {
      expect(names.map((name) => scene.newest.get(name)?.status?.round)).toEqual(names.map(() => rounds));
    }, SOON);
    expect(breaches(scene.journal.lines, scene.versions)).toEqual([]);
    // Rounds may be taken together, but none is run twice.
    for (const name of names) {
      const flows = new Set(starts(scene, name).map(({ flowId }) => flowId));
      expect(flows.size).toBeLessThanOrEqual(rounds);
      expect(starts(scene, name)).toHaveLength(flows.size * STEPS.length);
    }
  });
});

describe('two operators with flows', { timeout: 120_000 }, () => {
  it('engine #6: the leader is cut off: it exits 1, the other goes on, nothing of the old term is written', async () => {
    await using scene = await stage.scene();
    const [oldProxy, newProxy] = [await scene.proxy(), await scene.proxy()];
    const leader = await scene.startAndWait(oldProxy, LEASE);
    await scene.create('moved', { holdAt: 'cross' });
    await scene.journal.until(startOf('cross'));
    const standby = await scene.start(newProxy, LEASE);
    await standby.untilLogged('operator waits to lead');
    oldProxy.pause();
    const cutAt = performance.now();
    await standby.untilLogged('operator leads');
    expect(performance.now() - cutAt).toBeLessThan(LEASE_MS + SLACK_MS);
    const { exitCode } = await leader.finished;
    scene.journal.append({ phase: 'gone', pid: leader.pid });
    expect(exitCode).toBe(1);
    await expectDone(scene, ['moved']);
    expectEpochsRise(scene);
    const stopped = scene.journal.taskLines.filter(({ phase }) => phase === 'stopped');
    expect(stopped.map(({ pid, task }) => [pid, task])).toEqual([[leader.pid, 'cross']]);
  });

  it('engine #6: the leader is frozen inside of tasks and wakes up when another leads', async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    const leader = await scene.startAndWait(proxy, LEASE);
    const standby = await scene.start(proxy, LEASE);
    await standby.untilLogged('operator waits to lead');
    const names = named('frozen', 5);
    for (const name of names) await scene.create(name, { taskMs: 700 });
    await scene.journal.until(startOf('depart'));
    leader.signal('SIGSTOP');
    scene.journal.append({ phase: 'frozen', pid: leader.pid });
    await standby.untilLogged('operator leads');
    await delay(500);
    leader.signal('SIGCONT');
    expect((await leader.finished).exitCode).toBe(1);
    await expectDone(scene, names);
    expectEpochsRise(scene);
  });

  it('engine #27: SIGTERM while a task runs: exit 0, the lease is free, the next one goes on', async () => {
    await using scene = await stage.scene();
    const proxy = await scene.proxy();
    // With the real lease, whose end nobody waits for here.
    const first = await scene.startAndWait(proxy, {});
    await scene.create('stopped', { holdAt: 'cross' });
    await scene.journal.until(startOf('cross'));
    const askedAt = performance.now();
    first.signal('SIGTERM');
    expect((await first.finished).exitCode).toBe(0);
    expect(performance.now() - askedAt).toBeLessThan(5_000);
    scene.journal.append({ phase: 'gone', pid: first.pid });
    await scene.startAndWait(proxy, {});
    await expectDone(scene, ['stopped']);
    expect(performance.now() - askedAt).toBeLessThan(15_000);
  });
});

/** Once a newer leader has written an errand, no older one does. */
function expectEpochsRise(scene: Scene): void {
  const epochs = new Map<string, number[]>();
  for (const { metadata, status } of scene.versions) {
    const epoch = status?.operationContext?.owner?.epoch;
    if (epoch !== undefined) epochs.set(metadata.name, [...(epochs.get(metadata.name) ?? []), epoch]);
  }
  for (const each of epochs.values()) {
    expect(new Set(each).size).toBe(2);
    expect(each).toEqual(each.toSorted((a, b) => a - b));
  }
}
