/** The acceptance scenarios of the engine that need no other process; those that kill are in test/chaos. */
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { awaitDeletion } from '../../src/kube/await-object.ts';
import {
  CanceledError,
  configMaps,
  defineFlow,
  defineKind,
  defineTasks,
  PermanentError,
  type TaskContext,
  type TaskOutcome,
} from '../../src/index.ts';
import type { FlowExtension } from '../../src/taskflow/flow-catalogue.ts';
import { type Trial, trial } from '../fixtures/trial.ts';
import { useCluster } from '../support/cluster.ts';
import { startEngine, type TestEngine, whileTimePasses } from '../support/engine.ts';
import { installCrd } from '../support/install-operator.ts';
import { manualClock } from '../support/manual-clock.ts';

const cluster = useCluster();
beforeAll(() => installCrd(cluster.admin, trial));

type Ctx = TaskContext<Trial>;
type Body = (ctx: Ctx) => Promise<TaskOutcome<Trial>>;

const noop: Body = async () => undefined;
const untilAborted: Body = (ctx) =>
  new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error)));

/** A kind whose one flow has these tasks, in this order. */
function linear(
  bodies: Readonly<Record<string, Body>>,
  shape: (flow: ReturnType<typeof defineFlow<Trial>>) => ReturnType<typeof defineFlow<Trial>> = (flow) =>
    flow,
  states: Parameters<typeof defineKind<typeof trial>>[1]['states'] = {},
) {
  const tasks = defineTasks(trial, bodies);
  const flow = shape(
    defineFlow<Trial>('work', Object.values(tasks)).to('done').onFailure('retry from current'),
  );
  return defineKind(trial, {
    tasks,
    states: { new: { flow }, done: { ready: true }, failed: { failed: true }, ...states },
  });
}

describe('a flow', () => {
  it('engine #1: latency of eight tasks that return at once', async () => {
    const names = Array.from({ length: 8 }, (_, n) => `task${String.fromCharCode(65 + n)}`);
    const engine = await startEngine(cluster, linear(Object.fromEntries(names.map((name) => [name, noop]))));
    // The first of all objects waits for connections and caches, not for the engine.
    await engine.create('warm');
    await engine.untilState('warm', 'done');
    const began = Date.now();
    await engine.create('quick');
    const { status } = await engine.untilState('quick', 'done');
    const [flow] = status?.operationHistory ?? [];
    expect(Date.parse(flow?.finishedAt ?? '') - began).toBeLessThan(2_000);
    expect(flow?.tasks).toHaveLength(8);
    expect(status?.operationHistory?.[0]).toMatchObject({ name: 'work', result: 'Succeeded' });
    await engine.events('quick', 'FlowStarted');
    await engine.events('quick', 'FlowSucceeded');
    // Planning and the first claim are one write, and each task is one more.
    expect(engine.statusWrites('quick')).toBe(9);
  });

  it('engine #7: retry from current, with growing gaps', async () => {
    const at: number[] = [];
    const engine = await startEngine(
      cluster,
      linear({
        first: noop,
        async shaky(ctx) {
          at.push(Date.now());
          expect(ctx.attempt).toBe(at.length);
          if (at.length < 3) throw new Error('not yet');
        },
      }),
    );
    await engine.create('shaky');
    const failing = await engine.until(
      'shaky',
      'to fail twice',
      ({ status }) => status?.operationContext?.attempt === 3,
    );
    expect(failing.status?.operationContext).toMatchObject({
      idx: 2,
      task: 'shaky',
      failureRule: { retryCount: 2 },
      lastError: { task: 'shaky', attempt: 2, message: 'not yet', retryable: true },
    });
    const { status } = await engine.untilState('shaky', 'done');
    const [first = 0, second = 0, third = 0] = at;
    expect(second - first).toBeGreaterThan(790);
    expect(second - first).toBeLessThan(1_700);
    expect(third - second).toBeGreaterThan(1_590);
    expect(third - second).toBeLessThan(3_000);
    expect(status?.operationHistory?.[0]?.tasks[1]).toMatchObject({
      task: 'shaky',
      attempts: 3,
      result: 'successful',
    });
    expect(status?.consecutiveFailures).toBeUndefined();
  });

  it(
    'engine #8: retry over with a change of state backs off, counts on, and is archived',
    { timeout: 120_000 },
    async () => {
      const clock = manualClock(Date.now());
      const at: number[] = [];
      const tasks = defineTasks(trial, {
        async grow() {
          at.push(clock.now());
          throw new Error('never');
        },
      });
      const grow = defineFlow<Trial>('grow', [tasks.grow])
        .to('running')
        .onFailure('retry over', { to: 'running', maxRetry: 0 });
      const kind = defineKind(trial, {
        tasks,
        initial: 'running',
        states: {
          running: {
            ready: true,
            next: ({ spec, status }) => (status?.size === spec.size ? undefined : 'growing'),
          },
          growing: { flow: grow },
          failed: { failed: true },
        },
      });
      const engine = await startEngine(cluster, kind, { clock });
      await engine.create('hopeless');
      const tenth = engine.until(
        'hopeless',
        'to fail ten times',
        (object) =>
          (object.status?.consecutiveFailures?.count ?? 0) >= 10 && !object.status?.operationContext,
        60_000,
      );
      const { status: failing } = await whileTimePasses(clock, tenth, 100_000);
      const failedAt = Date.parse(failing?.operationHistory?.[0]?.finishedAt ?? '');
      const delayMs = Date.parse(failing?.consecutiveFailures?.nextAttemptAt ?? '') - failedAt;
      expect(delayMs).toBeGreaterThanOrEqual(240_000);
      expect(delayMs).toBeLessThanOrEqual(360_000);
      const { status } = await whileTimePasses(
        clock,
        engine.untilState('hopeless', 'failed', 100_000),
        400_000,
      );
      expect(status?.operationHistory?.[0]).toMatchObject({ name: 'grow', result: 'Archived' });
      expect(status?.conditions?.find(({ type }) => type === 'Degraded')).toMatchObject({ status: 'True' });
      expect(at).toHaveLength(100);
      await engine.events('hopeless', 'Archive');
      await engine.annotate('hopeless', { 'taskflow.dev/retry': '1' });
      await whileTimePasses(
        clock,
        engine.until(
          'hopeless',
          'to be tried again',
          (object) => object.status?.consecutiveFailures?.count === 1,
        ),
      );
    },
  );

  it('engine #9: a failed flow with Pause makes no calls until somebody says retry', async () => {
    let broken = true;
    const engine = await startEngine(
      cluster,
      linear(
        {
          first: noop,
          async fragile() {
            if (broken) throw new Error('somebody must look');
          },
        },
        (flow) => flow.onFailure('Pause'),
      ),
    );
    await engine.create('stuck');
    const { status } = await engine.until(
      'stuck',
      'to be stuck',
      (object) => object.status?.operationContext?.taskStatus === 'failed',
    );
    expect(status?.conditions?.find(({ type }) => type === 'Degraded')).toMatchObject({
      status: 'True',
      reason: 'PausedOnFailure',
    });
    await engine.events('stuck', 'TaskFailed');
    const calls = engine.proxy.requests.length;
    await delay(3_000);
    expect(engine.proxy.requests.length).toBe(calls);
    broken = false;
    await engine.annotate('stuck', { 'taskflow.dev/retry': 'now' });
    const done = await engine.untilState('stuck', 'done');
    expect(done.metadata.annotations?.['taskflow.dev/retry']).toBeUndefined();
    const accepted = (await engine.events('stuck', 'CommandAccepted')).find(
      ({ reason }) => reason === 'CommandAccepted',
    );
    expect(accepted?.message).toContain('by alice');
    expect(done.status?.acceptedCommands).toBeUndefined();
  });

  it('engine #10: a permanent error has no second attempt', async () => {
    let runs = 0;
    const engine = await startEngine(
      cluster,
      linear({
        async impossible() {
          runs++;
          throw new PermanentError('there is no such disk', { reason: 'NoDisk' });
        },
      }),
    );
    const began = performance.now();
    await engine.create('impossible');
    const { status } = await engine.untilState('impossible', 'failed');
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(runs).toBe(1);
    expect(status?.operationHistory?.[0]).toMatchObject({
      result: 'Failed',
      tasks: [{ result: 'failed', attempts: 1 }],
    });
    const warnings = (await engine.events('impossible', 'FlowFailed')).filter(
      ({ type }) => type === 'Warning',
    );
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining('there is no such disk'),
    ]);
  });

  it('engine #11: paused while a task runs, the task ends, the next one does not start', async () => {
    const { promise: release, resolve } = Promise.withResolvers<void>();
    let second = 0;
    const engine = await startEngine(
      cluster,
      linear({
        first: () => release,
        async second() {
          second++;
        },
      }),
    );
    await engine.create('paused');
    await engine.until(
      'paused',
      'to run',
      ({ status }) => status?.operationContext?.taskStatus === 'running',
    );
    await engine.annotate('paused', { 'taskflow.dev/pause-reconciling': 'true' });
    await engine.until('paused', 'to be paused', ({ status }) =>
      (status?.conditions ?? []).some(({ type, status: is }) => type === 'Paused' && is === 'True'),
    );
    resolve();
    const { status } = await engine.until(
      'paused',
      'to have ended its task',
      (object) => object.status?.operationContext?.task === 'second',
    );
    expect(status?.operationContext).toMatchObject({
      taskStatus: 'pending',
      finished: [{ task: 'first', result: 'successful' }],
    });
    expect(second).toBe(0);
    const resumed = performance.now();
    await engine.annotate('paused', { 'taskflow.dev/pause-reconciling': null });
    await engine.untilState('paused', 'done');
    expect(performance.now() - resumed).toBeLessThan(1_000);
    expect(second).toBe(1);
    await engine.events('paused', 'Paused');
    await engine.events('paused', 'Resumed');
  });

  it('engine #12: skip names the current task, or does nothing', async () => {
    const aborted: string[] = [];
    const engine = await startEngine(
      cluster,
      linear({
        async stuck(ctx) {
          await untilAborted(ctx).catch((error: Error) => {
            aborted.push(error.name);
            throw error;
          });
        },
        last: noop,
      }),
    );
    await engine.create('skipped');
    await engine.until(
      'skipped',
      'to run',
      ({ status }) => status?.operationContext?.taskStatus === 'running',
    );
    await engine.annotate('skipped', { 'taskflow.dev/skip': 'last' });
    await engine.until(
      'skipped',
      'to have refused',
      ({ metadata }) => metadata.annotations?.['taskflow.dev/skip'] === undefined,
    );
    await engine.events('skipped', 'CommandRefused');
    expect(aborted).toEqual([]);
    await engine.annotate('skipped', { 'taskflow.dev/skip': 'stuck' });
    const { status } = await engine.untilState('skipped', 'done');
    expect(aborted).toEqual(['CanceledError']);
    expect(status?.operationHistory?.[0]?.tasks.map(({ result }) => result)).toEqual([
      'skipped',
      'successful',
    ]);
    await engine.events('skipped', 'TaskSkipped');
  });

  it('engine #13: cancel ends the task and undoes what was done, in reverse', async () => {
    const undone: string[] = [];
    const undo =
      (name: string): Body =>
      async () =>
        void undone.push(name);
    const tasks = defineTasks(trial, {
      one: noop,
      two: noop,
      long: untilAborted,
      undoOne: undo('one'),
      undoTwo: undo('two'),
    });
    const flow = defineFlow<Trial>('work')
      .step(tasks.one, { compensate: tasks.undoOne })
      .step(tasks.two, { compensate: tasks.undoTwo })
      .step(tasks.long)
      .to('done')
      .cancelTo('idle');
    const kind = defineKind(trial, {
      tasks,
      states: { new: { flow }, idle: {}, done: { ready: true }, failed: { failed: true } },
    });
    const engine = await startEngine(cluster, kind);
    await engine.create('cancelled');
    const { status: before } = await engine.until(
      'cancelled',
      'to run',
      ({ status }) =>
        status?.operationContext?.task === 'long' && status.operationContext.taskStatus === 'running',
    );
    await engine.annotate('cancelled', { 'taskflow.dev/cancel': 'another-flow' });
    await engine.until(
      'cancelled',
      'to have refused',
      ({ metadata }) => metadata.annotations?.['taskflow.dev/cancel'] === undefined,
    );
    const asked = performance.now();
    await engine.annotate('cancelled', { 'taskflow.dev/cancel': before?.operationContext?.flowId ?? '' });
    const { status } = await engine.untilState('cancelled', 'idle');
    expect(performance.now() - asked).toBeLessThan(2_000);
    expect(undone).toEqual(['two', 'one']);
    expect(status?.operationHistory?.[0]).toMatchObject({ result: 'Canceled' });
  });

  it('a permanent failure undoes what was done, too', async () => {
    const undone: string[] = [];
    let failUndo = true;
    const tasks = defineTasks(trial, {
      one: noop,
      async bad() {
        throw new PermanentError('no');
      },
      async undoOne(ctx) {
        if (failUndo) {
          failUndo = false;
          throw new Error('undoing failed once');
        }
        undone.push(ctx.flow);
      },
    });
    const flow = defineFlow<Trial>('work')
      .step(tasks.one, { compensate: tasks.undoOne })
      .step(tasks.bad)
      .to('done');
    const engine = await startEngine(
      cluster,
      defineKind(trial, { tasks, states: { new: { flow }, done: {}, failed: { failed: true } } }),
    );
    await engine.create('undone');
    const { status } = await engine.untilState('undone', 'failed');
    expect(undone).toEqual(['work']);
    expect(status?.operationHistory?.[0]).toMatchObject({
      result: 'Failed',
      error: expect.stringContaining('no') as string,
    });
  });
});

describe('deletion', () => {
  const deletable = (waits: boolean, body: Body, cleaned: string[]) => {
    const tasks = defineTasks(trial, {
      work: body,
      async cleanUp(ctx) {
        cleaned.push(ctx.key);
      },
    });
    const work = defineFlow<Trial>('work', [tasks.work]).to('done');
    const clean = defineFlow<Trial>('clean', [tasks.cleanUp]).to('cleaned');
    return defineKind(trial, {
      tasks,
      deletion: { state: 'deleting', finalizer: 'engine.test.taskflow.dev/clean' },
      states: {
        new: { flow: waits ? work.deletionWaits() : work },
        done: { ready: true },
        deleting: { flow: clean },
        cleaned: { deleted: true },
        failed: { failed: true },
      },
    });
  };
  const gone = (engine: TestEngine, name: string) =>
    awaitDeletion(cluster.admin, trial, { namespace: engine.namespace, name }, { timeoutMs: 10_000 });

  it('engine #14: delete while running pre-empts the flow', async () => {
    const cleaned: string[] = [];
    const engine = await startEngine(cluster, deletable(false, untilAborted, cleaned));
    await engine.create('busy');
    await engine.until('busy', 'to run', ({ status }) => status?.operationContext?.taskStatus === 'running');
    const asked = performance.now();
    await cluster.admin.delete(trial, { namespace: engine.namespace, name: 'busy' });
    await gone(engine, 'busy');
    expect(performance.now() - asked).toBeLessThan(2_000);
    expect(cleaned).toEqual([`${engine.namespace}/busy`]);
  });

  it('engine #14: or waits for its end, where the flow says so', async () => {
    const cleaned: string[] = [];
    const { promise: release, resolve } = Promise.withResolvers<void>();
    const engine = await startEngine(
      cluster,
      deletable(true, () => release, cleaned),
    );
    await engine.create('busy');
    await engine.until('busy', 'to run', ({ status }) => status?.operationContext?.taskStatus === 'running');
    await cluster.admin.delete(trial, { namespace: engine.namespace, name: 'busy' });
    const { status } = await engine.until(
      'busy',
      'to be deleted',
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    );
    expect(status?.operationContext?.cancelRequested).toBeUndefined();
    resolve();
    await gone(engine, 'busy');
    expect(cleaned).toHaveLength(1);
  });

  it('is not processed while the object says ignore-deletion', async () => {
    const cleaned: string[] = [];
    const engine = await startEngine(cluster, deletable(false, noop, cleaned));
    await engine.create('kept', { metadata: { annotations: { 'taskflow.dev/ignore-deletion': 'true' } } });
    await engine.untilState('kept', 'done');
    await cluster.admin.delete(trial, { namespace: engine.namespace, name: 'kept' });
    await engine.until(
      'kept',
      'to be asked to go',
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    );
    await engine.annotate('kept', { 'example.com/touched': 'yes' });
    expect((await engine.get('kept')).status?.status).toBe('done');
    await engine.annotate('kept', { 'taskflow.dev/ignore-deletion': null });
    await gone(engine, 'kept');
    expect(cleaned).toHaveLength(1);
  });

  it('engine #15: an object that vanishes takes its task with it', async () => {
    const reasonsOfEnd: unknown[] = [];
    const engine = await startEngine(
      cluster,
      linear({
        async long(ctx) {
          await untilAborted(ctx).catch((error: unknown) => {
            reasonsOfEnd.push(error);
            throw error;
          });
        },
      }),
    );
    await engine.create('vanishes');
    await engine.until(
      'vanishes',
      'to run',
      ({ status }) => status?.operationContext?.taskStatus === 'running',
    );
    await cluster.admin.delete(trial, { namespace: engine.namespace, name: 'vanishes' });
    await vi.waitFor(() => expect(reasonsOfEnd).toEqual([expect.any(CanceledError)]));
    expect(engine.tasks.snapshot()).toEqual({ working: [], results: [] });
    await engine.events('vanishes', 'FlowStarted');
    const writes = (): number => engine.proxy.requests.filter(({ method }) => method === 'PATCH').length;
    const before = writes();
    await delay(1_000);
    expect(writes()).toBe(before);
  });
});

describe('time', () => {
  it('engine #16: a task that ignores its signal is detached, and its late result changes nothing', async () => {
    const clock = manualClock(Date.now());
    const late = Promise.withResolvers<void>();
    let runs = 0;
    const tasks = defineTasks(trial, {
      deaf: {
        timeoutMs: 5_000,
        async run() {
          if (++runs > 1) return { status: { note: 'second' } };
          await late.promise;
          return { status: { note: 'late' } };
        },
      },
    });
    const flow = defineFlow<Trial>('work', [tasks.deaf]).to('done').onFailure('retry from current');
    const engine = await startEngine(
      cluster,
      defineKind(trial, { tasks, states: { new: { flow }, done: {}, failed: { failed: true } } }),
      { clock },
    );
    await engine.create('deaf');
    await engine.until('deaf', 'to run', ({ status }) => status?.operationContext?.taskStatus === 'running');
    await vi.waitFor(() => expect(runs).toBe(1));
    await clock.advance(36_000);
    const { status } = await engine.until(
      'deaf',
      'to have timed out',
      (object) => object.status?.operationContext?.lastError !== undefined,
    );
    expect(status?.operationContext?.lastError).toMatchObject({ reason: 'TimeoutError', retryable: true });
    await vi.waitFor(async () => {
      await clock.advance(2_000);
      expect(runs).toBe(2);
    });
    const done = await engine.untilState('deaf', 'done');
    late.resolve();
    await delay(200);
    expect((await engine.get('deaf')).status).toEqual(done.status);
    expect(done.status?.note).toBe('second');
    await engine.events('deaf', 'TaskTimeout');
  });

  it('engine #17: no heartbeat fails the attempt; progress is shown at most every few seconds', async () => {
    const clock = manualClock(Date.now());
    const beat = Promise.withResolvers<(percent: number) => void>();
    let runs = 0;
    const tasks = defineTasks(trial, {
      copy: {
        heartbeatMs: 60_000,
        async run(ctx) {
          if (++runs > 1) return;
          beat.resolve((percent) => ctx.heartbeat({ percent, message: 'copying' }));
          await untilAborted(ctx);
        },
      },
    });
    const flow = defineFlow<Trial>('work', [tasks.copy]).to('done').onFailure('retry from current');
    const engine = await startEngine(
      cluster,
      defineKind(trial, { tasks, states: { new: { flow }, done: {}, failed: { failed: true } } }),
      { clock },
    );
    await engine.create('copying');
    const tell = await beat.promise;
    const shown = (percent: number) =>
      engine.until(
        'copying',
        `to show ${percent} %`,
        ({ status }) => status?.operationContext?.progress?.percent === percent,
      );
    tell(10);
    await shown(10);
    const written = (count: number) => vi.waitFor(() => expect(engine.statusWrites('copying')).toBe(count));
    await written(2);
    for (let percent = 11; percent <= 40; percent++) tell(percent);
    await delay(300);
    await written(2);
    await clock.advance(5_000);
    await shown(40);
    await written(3);
    await clock.advance(61_000);
    const { status } = await engine.until(
      'copying',
      'to have failed',
      (object) => object.status?.operationContext?.lastError !== undefined,
    );
    expect(status?.operationContext?.lastError?.reason).toBe('HeartbeatTimeout');
    await vi.waitFor(async () => {
      await clock.advance(2_000);
      expect(runs).toBe(2);
    });
    await engine.untilState('copying', 'done');
  });

  it('engine #18: waiting holds no slot, and costs no writes', { timeout: 180_000 }, async () => {
    const objects = 1_000;
    const probes = new Map<string, number>();
    let running = 0;
    let most = 0;
    const engine = await startEngine(
      cluster,
      linear({
        async waits(ctx) {
          most = Math.max(most, ++running);
          const count = (probes.get(ctx.key) ?? 0) + 1;
          probes.set(ctx.key, count);
          await delay(1);
          running--;
          return count < 4 ? ctx.wait(1_000, 'three probes') : undefined;
        },
      }),
      { poolSize: 10 },
    );
    const names = Array.from({ length: objects }, (_, n) => `waits-${n}`);
    for (let at = 0; at < names.length; at += 50)
      await Promise.all(names.slice(at, at + 50).map((name) => engine.create(name)));
    await vi.waitFor(
      async () => {
        const { items } = await cluster.admin.list(trial, { namespace: engine.namespace });
        expect(items.filter(({ status }) => status?.status === 'done')).toHaveLength(objects);
      },
      { timeout: 120_000, interval: 1_000 },
    );
    expect(most).toBeLessThanOrEqual(10);
    // Claim, first wait, end; the probes between cost nothing.
    expect(engine.statusWrites('waits-0')).toBe(3);
  });

  it('a flow that is not done by its deadline fails for good', async () => {
    const clock = manualClock(Date.now());
    const engine = await startEngine(
      cluster,
      linear({ long: untilAborted }, (flow) => flow.deadline(60_000)),
      { clock },
    );
    await engine.create('late');
    await engine.until('late', 'to run', ({ status }) => status?.operationContext?.taskStatus === 'running');
    await vi.waitFor(async () => {
      await clock.advance(30_000);
      expect((await engine.get('late')).status?.status).toBe('failed');
    });
    expect((await engine.get('late')).status?.operationHistory?.[0]?.error).toContain('not done by');
  });
});

describe('the status', () => {
  it('engine #19: a rescue between read and write of a pass survives', async () => {
    const { promise: release, resolve } = Promise.withResolvers<void>();
    const engine = await startEngine(cluster, linear({ stuck: () => release, last: untilAborted }));
    await engine.create('rescued');
    await engine.until(
      'rescued',
      'to run',
      ({ status }) => status?.operationContext?.taskStatus === 'running',
    );
    // The engine does not hear of the rescue: its write meets it.
    expect(engine.proxy.silenceWatches()).toBe(1);
    await cluster.admin.patch(
      trial,
      { namespace: engine.namespace, name: 'rescued' },
      { kind: 'merge', body: { status: { operationContext: { taskStatus: 'successful', taskId: '' } } } },
      { subresource: 'status', fieldManager: 'rescue' },
    );
    resolve();
    const { status } = await engine.until(
      'rescued',
      'to go on',
      (object) => object.status?.operationContext?.task === 'last',
    );
    expect(status?.operationContext).toMatchObject({
      idx: 2,
      finished: [{ task: 'stuck', result: 'skipped' }],
    });
  });

  it('a rescue while the task runs ends it before the next one starts', async () => {
    const order: string[] = [];
    const engine = await startEngine(
      cluster,
      linear({
        async stuck(ctx) {
          await untilAborted(ctx).catch(() => undefined);
          await delay(200);
          order.push('stuck ended');
        },
        last: async () => void order.push('last began'),
      }),
    );
    await engine.create('rescued');
    await engine.until(
      'rescued',
      'to run',
      ({ status }) => status?.operationContext?.taskStatus === 'running',
    );
    await cluster.admin.patch(
      trial,
      { namespace: engine.namespace, name: 'rescued' },
      { kind: 'merge', body: { status: { operationContext: { taskStatus: 'successful', taskId: '' } } } },
      { subresource: 'status', fieldManager: 'rescue' },
    );
    await engine.untilState('rescued', 'done');
    expect(order).toEqual(['stuck ended', 'last began']);
  });

  it('engine #20: a field of another controller stays', async () => {
    const { promise: release, resolve } = Promise.withResolvers<void>();
    const engine = await startEngine(
      cluster,
      linear({ first: () => release, second: async () => ({ status: { note: 'ours' } }) }),
    );
    await engine.create('shared');
    await engine.until(
      'shared',
      'to run',
      ({ status }) => status?.operationContext?.taskStatus === 'running',
    );
    await cluster.admin.patch(
      trial,
      { namespace: engine.namespace, name: 'shared' },
      { kind: 'merge', body: { status: { foreign: 'theirs' } } },
      { subresource: 'status', fieldManager: 'other' },
    );
    resolve();
    const { status } = await engine.untilState('shared', 'done');
    expect(status).toMatchObject({ foreign: 'theirs', note: 'ours' });
  });

  it('engine #21: an unknown task in a stored flow fails it, without a busy loop', async () => {
    const engine = await startEngine(cluster, linear({ known: noop }));
    await engine.stop();
    await engine.create('downgraded');
    const context = {
      name: 'work of the future',
      tasks: ['known', 'unheard of'],
      task: 'known',
      idx: 1,
      taskStatus: 'running',
      taskId: 'from-upstream',
      targetStatus: 'done',
      failureRule: { failureStrategy: 'retry over', failureStatus: 'failed' },
    };
    await cluster.admin.patch(
      trial,
      { namespace: engine.namespace, name: 'downgraded' },
      { kind: 'merge', body: { status: { status: 'new', operationContext: context } } },
      { subresource: 'status' },
    );
    const older = await startEngine(cluster, linear({ known: noop }), { namespace: engine.namespace });
    const { status } = await older.untilState('downgraded', 'failed');
    expect(status?.operationHistory?.[0]).toMatchObject({
      result: 'Failed',
      error: expect.stringContaining('unheard of') as string,
    });
    expect(older.statusWrites('downgraded')).toBeLessThanOrEqual(3);
  });

  it('engine #24: a change of the spec in the middle of a flow is planned after it', async () => {
    const { promise: release, resolve } = Promise.withResolvers<void>();
    const seen: number[] = [];
    const tasks = defineTasks(trial, {
      async grow(ctx) {
        seen.push(ctx.object.spec.size);
        if (seen.length === 1) await release;
        return { status: { size: ctx.object.spec.size } };
      },
    });
    const flow = defineFlow<Trial>('grow', [tasks.grow]).to('running');
    const kind = defineKind(trial, {
      tasks,
      states: {
        growing: { flow },
        running: {
          ready: true,
          next: ({ spec, status }) => (spec.size === status?.size ? undefined : 'growing'),
        },
        failed: { failed: true },
      },
    });
    const engine = await startEngine(cluster, kind);
    await engine.create('changing', { spec: { size: 1, items: [] } });
    await engine.until(
      'changing',
      'to run',
      ({ status }) => status?.operationContext?.taskStatus === 'running',
    );
    await cluster.admin.patch(
      trial,
      { namespace: engine.namespace, name: 'changing' },
      { kind: 'merge', body: { spec: { size: 5 } } },
    );
    const { status } = await engine.until(
      'changing',
      'to have changed',
      ({ metadata }) => metadata.generation === 2,
    );
    expect(status?.operationContext?.generation).toBe(1);
    resolve();
    const done = await engine.until(
      'changing',
      'to have grown twice',
      (object) => object.status?.size === 5 && object.status.status === 'running',
    );
    expect(seen).toEqual([1, 5]);
    expect(done.status?.operationHistory).toHaveLength(2);
    expect(done.status?.observedGeneration).toBe(2);
  });

  it('engine #25: whatever a task throws becomes a failure with a message', async () => {
    const throwing: Readonly<Record<string, Body>> = {
      text: async () => {
        // eslint-disable-next-line no-throw-literal
        throw 'just text' as unknown as Error;
      },
      nothing: () => Promise.reject(undefined),
      sync: () => {
        throw new Error('at once');
      },
    };
    for (const [name, body] of Object.entries(throwing)) {
      const engine = await startEngine(
        cluster,
        linear({ [name]: body }, (flow) => flow.onFailure('Pause')),
      );
      await engine.create(name);
      const { status } = await engine.until(
        name,
        'to have failed',
        (object) => object.status?.operationContext?.taskStatus === 'failed',
      );
      expect(status?.operationContext?.lastError?.message).toMatch(/just text|at once|\w+/);
      await engine.stop();
    }
  });

  it('engine #26: a secret in an error is masked in log, event and status', async () => {
    const engine = await startEngine(
      cluster,
      linear({
        async createUser(ctx) {
          ctx.log.info('statement', { sql: "CREATE USER root IDENTIFIED BY 'hunter2'" });
          throw new Error("1064: near CREATE USER root IDENTIFIED BY 'hunter2'");
        },
      }),
    );
    await engine.create('secret');
    const object = await engine.until(
      'secret',
      'to have failed',
      ({ status }) => status?.operationContext?.lastError !== undefined,
    );
    const events = await engine.events('secret', 'TaskFailed');
    const everything = JSON.stringify([object, events, engine.lines]);
    expect(everything).toContain('IDENTIFIED BY');
    expect(everything).not.toContain('hunter2');
  });

  it('engine #28: many failures with long messages keep the object small', { timeout: 120_000 }, async () => {
    const clock = manualClock(Date.now());
    const tasks = defineTasks(trial, {
      async loud() {
        throw new Error('x'.repeat(10 * 1024));
      },
    });
    const flow = defineFlow<Trial>('work', [tasks.loud])
      .to('done')
      .onFailure('retry over', { to: 'idle', maxRetry: 500 });
    const kind = defineKind(trial, {
      tasks,
      states: { new: { flow }, idle: { next: () => 'new' }, done: {}, failed: { failed: true } },
    });
    const engine = await startEngine(cluster, kind, { clock });
    await engine.create('loud');
    const often = engine.until(
      'loud',
      'to fail 200 times',
      ({ status }) => (status?.consecutiveFailures?.count ?? 0) >= 200,
      100_000,
    );
    await whileTimePasses(clock, often, 400_000);
    const object = await engine.get('loud');
    expect(JSON.stringify({ ...object, metadata: {} }).length).toBeLessThan(64 * 1024);
    expect(object.status?.operationHistory).toHaveLength(10);
  });
});

describe('flows of several tasks at once', () => {
  it('a parallel step runs its members side by side, and each has its own attempts', async () => {
    const running = new Set<string>();
    let most = 0;
    let failed = false;
    const tasks = defineTasks(trial, {
      before: noop,
      async prepare(ctx) {
        running.add(ctx.item ?? '');
        most = Math.max(most, running.size);
        await delay(100);
        running.delete(ctx.item ?? '');
        if (ctx.item === 'b' && !failed) {
          failed = true;
          throw new Error('once');
        }
      },
      after: noop,
    });
    const flow = defineFlow<Trial>('work')
      .step(tasks.before)
      .foreach('prepare zones', ({ spec }) => spec.items, tasks.prepare)
      .step(tasks.after)
      .to('done')
      .onFailure('retry from current');
    const engine = await startEngine(
      cluster,
      defineKind(trial, { tasks, states: { new: { flow }, done: {}, failed: { failed: true } } }),
    );
    await engine.create('zones', { spec: { size: 1, items: ['a', 'b', 'c'] } });
    const during = await engine.until(
      'zones',
      'to prepare',
      ({ status }) => status?.operationContext?.task === 'prepare zones',
    );
    expect(during.status?.operationContext?.tasks).toEqual(['before', 'prepare zones', 'after']);
    expect(during.status?.operationContext?.running?.map(({ task }) => task)).toEqual([
      'prepare:a',
      'prepare:b',
      'prepare:c',
    ]);
    const { status } = await engine.untilState('zones', 'done');
    expect(most).toBe(3);
    const ended = status?.operationHistory?.[0]?.tasks ?? [];
    expect(ended.find(({ task }) => task === 'prepare:b')?.attempts).toBe(2);
    expect(ended.find(({ task }) => task === 'prepare:a')?.attempts).toBe(1);
    expect(ended.map(({ task }) => task)).toContain('prepare zones');
  });

  it('started over, a parallel step runs all its members again; items that are there twice count once', async () => {
    const ran: string[] = [];
    const tasks = defineTasks(trial, {
      prepare: async (ctx) => void ran.push(ctx.item ?? ''),
      async check() {
        if (ran.length < 4) throw new Error('once more');
      },
    });
    const flow = defineFlow<Trial>('work')
      .foreach('prepare zones', ({ spec }) => spec.items, tasks.prepare)
      .step(tasks.check)
      .to('done')
      .onFailure('retry over', { to: 'new' });
    const engine = await startEngine(
      cluster,
      defineKind(trial, { tasks, states: { new: { flow }, done: {}, failed: { failed: true } } }),
    );
    await engine.create('over', { spec: { size: 1, items: ['a', 'b', 'a'] } });
    await engine.untilState('over', 'done');
    expect(ran.toSorted()).toEqual(['a', 'a', 'b', 'b']);
  });

  it('a parallel step of which one member fails for good is undone', async () => {
    const undone: string[] = [];
    const tasks = defineTasks(trial, {
      async make(ctx) {
        if (ctx.item === 'b') throw new PermanentError('cannot');
      },
      unmake: async (ctx) => void undone.push(ctx.task),
    });
    const flow = defineFlow<Trial>('work')
      .foreach('make all', ({ spec }) => spec.items, tasks.make, { compensate: tasks.unmake })
      .to('done');
    const engine = await startEngine(
      cluster,
      defineKind(trial, { tasks, states: { new: { flow }, done: {}, failed: { failed: true } } }),
    );
    await engine.create('half', { spec: { size: 1, items: ['a', 'b'] } });
    const { status } = await engine.untilState('half', 'failed');
    expect(undone).toEqual(['unmake']);
    expect(status?.consecutiveFailures).toEqual({ flow: 'work', count: 1 });
  });

  it('with failFast the first failure ends the others', async () => {
    const ended: string[] = [];
    const tasks = defineTasks(trial, {
      async bad() {
        throw new PermanentError('broken');
      },
      async slow(ctx) {
        await untilAborted(ctx).catch((error: Error) => {
          ended.push(error.name);
          throw error;
        });
      },
    });
    const flow = defineFlow<Trial>('work')
      .parallel('both', [tasks.bad, tasks.slow], { failFast: true })
      .to('done');
    const engine = await startEngine(
      cluster,
      defineKind(trial, { tasks, states: { new: { flow }, done: {}, failed: { failed: true } } }),
    );
    await engine.create('fast');
    const { status } = await engine.untilState('fast', 'failed');
    expect(ended).toEqual(['CanceledError']);
    expect(status?.operationHistory?.[0]?.error).toContain('broken');
  });

  it('a graph starts a node when what it needs has succeeded, and is undone when one fails for good', async () => {
    const order: string[] = [];
    const note: Body = async (ctx) => void order.push(ctx.item ?? ctx.task);
    const tasks = defineTasks(trial, {
      act: note,
      fails: async () => {
        throw new PermanentError('cannot switch');
      },
      undo: note,
    });
    const flow = defineFlow<Trial>('failover')
      .graphOf(({ spec }) => [
        { id: 'stop writes', task: tasks.act, compensate: tasks.undo },
        { id: 'copy a', task: tasks.act, needs: ['stop writes'] },
        { id: 'copy b', task: tasks.act, needs: ['stop writes'] },
        { id: 'switch', task: spec.size > 1 ? tasks.fails : tasks.act, needs: ['copy a', 'copy b'] },
        { id: 'start writes', task: tasks.act, needs: ['switch'] },
      ])
      .to('done')
      .onFailure('retry from current');
    const engine = await startEngine(
      cluster,
      defineKind(trial, { tasks, states: { new: { flow }, done: {}, failed: { failed: true } } }),
    );
    await engine.create('good');
    const good = await engine.untilState('good', 'done');
    expect(order[0]).toBe('stop writes');
    expect(order.slice(1, 3).toSorted()).toEqual(['copy a', 'copy b']);
    expect(order.slice(3)).toEqual(['switch', 'start writes']);
    expect(good.status?.operationHistory?.[0]?.tasks).toHaveLength(5);
    order.length = 0;
    await engine.create('bad', { spec: { size: 2, items: [] } });
    const bad = await engine.untilState('bad', 'failed');
    expect(order).toContain('undo');
    expect(order).not.toContain('start writes');
    expect(bad.status?.operationHistory?.[0]).toMatchObject({
      result: 'Failed',
      error: expect.stringContaining('cannot switch') as string,
    });
  });
});

describe('flows of others', () => {
  it('engine #23: an inserted task appears in new flows only', async () => {
    let open = false;
    const ran: string[] = [];
    const bodies: Readonly<Record<string, Body>> = {
      async first(ctx) {
        return open ? undefined : ctx.wait(200, 'the gate');
      },
      last: async (ctx) => void ran.push(`last ${ctx.object.metadata.name ?? ''}`),
    };
    const before = await startEngine(cluster, linear(bodies));
    await before.create('old');
    await before.until('old', 'to wait', ({ status }) => status?.operationContext?.waitingFor === 'the gate');
    await before.stop();
    const { audit } = defineTasks(trial, {
      audit: async (ctx) => void ran.push(`audit ${ctx.object.metadata.name ?? ''}`),
    });
    const insert = audit as FlowExtension['insert'];
    const after = await startEngine(cluster, linear(bodies), {
      namespace: before.namespace,
      extensions: [{ flow: 'work', after: 'first', insert }],
    });
    await after.create('new');
    const { status } = await after.until(
      'new',
      'to wait',
      (object) => object.status?.operationContext?.waitingFor === 'the gate',
    );
    expect(status?.operationContext?.tasks).toEqual(['first', 'audit', 'last']);
    expect((await after.get('old')).status?.operationContext?.tasks).toEqual(['first', 'last']);
    open = true;
    await Promise.all(['old', 'new'].map((name) => after.untilState(name, 'done')));
    expect(ran.toSorted()).toEqual(['audit new', 'last new', 'last old']);
  });
});

describe('objects that a kind watches', () => {
  it('a task that waits is asked at once when one of them changes', async () => {
    const tasks = defineTasks(trial, {
      async waitForMap(ctx) {
        const { namespace = '', name } = ctx.object.metadata;
        const { items } = await ctx.client.list(configMaps, { namespace, labelSelector: `for=${name}` });
        return items.length > 0 ? undefined : ctx.wait(3_600_000, 'a ConfigMap');
      },
    });
    const flow = defineFlow<Trial>('work', [tasks.waitForMap]).to('done');
    const kind = defineKind(trial, {
      tasks,
      owns: [
        {
          type: configMaps,
          map: ({ metadata }) =>
            metadata?.labels?.['for'] === undefined
              ? []
              : [`${metadata.namespace ?? ''}/${metadata.labels['for']}`],
        },
      ],
      rbac: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }],
      states: { new: { flow }, done: {}, failed: { failed: true } },
    });
    const engine = await startEngine(cluster, kind);
    await engine.create('waiting');
    await engine.until(
      'waiting',
      'to wait',
      ({ status }) => status?.operationContext?.waitingFor === 'a ConfigMap',
    );
    await cluster.admin.create(configMaps, {
      metadata: { namespace: engine.namespace, name: 'awaited', labels: { for: 'waiting' } },
    });
    const { status } = await engine.untilState('waiting', 'done');
    expect(status?.operationHistory?.[0]?.result).toBe('Succeeded');
  });
});

describe('observers', () => {
  it('ask in the background, and one that hangs holds nobody up', async () => {
    const answers = Promise.withResolvers<number>();
    const tasks = defineTasks(trial, { grow: noop });
    const kind = defineKind(trial, {
      tasks,
      initial: 'running',
      observers: {
        size: { run: () => answers.promise },
        hangs: { run: () => new Promise(() => {}) },
      },
      observe: (_, cache) => {
        const size = cache.observed<number>('size')?.value;
        return size === undefined ? {} : { size };
      },
      states: { running: { ready: true }, failed: { failed: true } },
    });
    const engine = await startEngine(cluster, kind);
    await engine.create('asked');
    const { status } = await engine.untilState('asked', 'running');
    expect(status?.size).toBeUndefined();
    answers.resolve(7);
    await engine.until('asked', 'to show the answer', (object) => object.status?.size === 7);
  });
});
