import { describe, expect, it, vi } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { CanceledError, HeartbeatTimeoutError, PermanentError, TimeoutError } from './errors.ts';
import { createTaskManager } from './pooled-task-manager.ts';
import type { TaskManagerOptions, TaskManagerObserver, TaskRun, TaskSpec } from './task-manager.ts';

const HOUR = 60 * 60 * 1000;

/** A manager on a clock that the test moves, and all that was heard of it. */
function createManager(options: Omit<TaskManagerOptions, 'clock'> = {}) {
  const clock = manualClock();
  const errors: string[] = [];
  const manager = createTaskManager({
    clock,
    onError: (error, { taskId }) => errors.push(`${taskId}: ${error.message}`),
    ...options,
  });
  const settled: string[] = [];
  manager.on('settled', (kind, key, taskId) => settled.push(`${kind} ${key} ${taskId}`));
  /** Lets everything happen that waits for no time. */
  const settle = () => clock.advance(0);
  return { clock, manager, settled, errors, settle };
}

function taskSpec(taskId: string, fn: TaskSpec['fn'], more: Partial<TaskSpec> = {}): TaskSpec {
  return { taskId, kind: 'Widget', key: `default/${taskId}`, flow: 'create', task: 'make-pods', fn, ...more };
}

/** A task that goes on until the test, or nobody, ends it. */
function heldTask(taskId: string, more: Partial<TaskSpec> = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  let run: TaskRun | undefined;
  const fn = (given: TaskRun) => {
    run = given;
    return promise;
  };
  return {
    spec: taskSpec(taskId, fn, more),
    succeed: resolve,
    fail: reject,
    get run(): TaskRun {
      if (!run) throw new Error(`${taskId} does not run yet`);
      return run;
    },
    get ran() {
      return run !== undefined;
    },
  };
}

/** Ends as soon as it is told to. */
const obedient: TaskSpec['fn'] = ({ signal }) =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });

const failedWith = (error: unknown) => expect.objectContaining({ status: 'failed', error });

describe('a task', () => {
  it('works, then has a result until that is collected', async () => {
    const { clock, manager, settle, settled } = createManager();
    const task = heldTask('t1');
    manager.submit(task.spec);
    expect(manager.isWorking('t1')).toBe(true);
    expect(task.ran).toBe(false);
    await settle();
    expect(task.ran).toBe(true);
    task.succeed(42);
    await settle();
    expect(manager.isWorking('t1')).toBe(false);
    expect(manager.result('t1')).toEqual({ status: 'successful', value: 42, finishedAt: clock.now() });
    expect(settled).toEqual(['Widget default/t1 t1']);
    manager.clean('t1');
    manager.clean('t1');
    expect(manager.result('t1')).toBeUndefined();
    expect(manager.snapshot()).toEqual({ working: [], results: [] });
    expect(clock.pending).toBe(0);
  });

  it('has left the working ones and has its result when the listeners hear of its end', async () => {
    const { manager, settle } = createManager();
    const seen: unknown[] = [];
    manager.on('settled', (_kind, _key, taskId) => {
      seen.push([manager.isWorking(taskId), manager.result(taskId)?.status]);
      manager.submit(taskSpec('t2', async () => 2, { key: 'default/t1' }));
    });
    manager.submit(taskSpec('t1', async () => 1));
    await settle();
    expect(seen[0]).toEqual([false, 'successful']);
  });

  it('can be looked at while it waits for a place, while it runs and while it ends', async () => {
    const { clock, manager, settle } = createManager({ concurrency: { sql: 1 } });
    const submittedAt = clock.now();
    const first = heldTask('t1', { poolClass: 'sql' });
    const second = heldTask('t2', { poolClass: 'sql', branch: 'zone-a' });
    manager.submit(first.spec);
    manager.submit(second.spec);
    await clock.advance(1_000);
    expect(manager.working('t2')).toEqual({
      taskId: 't2',
      kind: 'Widget',
      key: 'default/t2',
      flow: 'create',
      task: 'make-pods',
      branch: 'zone-a',
      submittedAt,
      startedAt: undefined,
      aborted: false,
      progress: undefined,
    });
    first.succeed(undefined);
    await settle();
    const startedAt = clock.now();
    await clock.advance(1_000);
    second.run.heartbeat({ percent: 50, message: 'half' });
    const heartbeatAt = clock.now();
    manager.abort('t2', 'enough');
    expect(manager.working('t2')).toMatchObject({
      startedAt,
      aborted: true,
      progress: { percent: 50, message: 'half', heartbeatAt },
    });
    expect(manager.snapshot()).toMatchObject({ working: [{ taskId: 't2' }], results: ['t1'] });
    expect(manager.working('t1')).toBeUndefined();
  });

  it.each([
    ['an Error', () => Promise.reject(new Error('disk full')), 'disk full'],
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors
    ['a string', () => Promise.reject('disk full'), 'disk full'],
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors
    ['nothing', () => Promise.reject(undefined), 'thrown: nothing'],
    [
      'an Error, before it gave a promise',
      () => {
        throw new Error('disk full');
      },
      'disk full',
    ],
  ])('that throws %s fails with a message, which is logged too', async (_, fn, message) => {
    const { manager, settle, errors } = createManager();
    manager.submit(taskSpec('t1', fn));
    await settle();
    expect(manager.result('t1')).toEqual(failedWith(expect.objectContaining({ message })));
    expect(errors).toEqual([`t1: ${message}`]);
  });

  it('that throws an error of the engine keeps it as it is', async () => {
    const { manager, settle } = createManager();
    const error = new PermanentError('no such zone', { reason: 'BadSpec' });
    manager.submit(taskSpec('t1', () => Promise.reject(error)));
    await settle();
    expect(manager.result('t1')).toEqual(failedWith(error));
  });

  it('is refused while another attempt works in its slot; the error names both', async () => {
    const { manager, settle } = createManager();
    const first = heldTask('t1', { key: 'default/w', branch: 'zone-a' });
    const inSlot = (taskId: string, more: Partial<TaskSpec> = {}) =>
      taskSpec(taskId, async () => 0, { key: 'default/w', branch: 'zone-a', ...more });
    manager.submit(first.spec);
    expect(() => manager.submit(inSlot('t2', { task: 'check' }))).toThrow(
      'Task t2 (create / check) cannot start: Widget default/w, branch zone-a, is still worked on by task t1 (create / make-pods)',
    );
    manager.submit(inSlot('t3', { branch: 'zone-b' }));
    manager.submit(inSlot('t4', { kind: 'Gadget' }));
    manager.submit(inSlot('t5', { key: 'other/w' }));
    first.succeed(undefined);
    await settle();
    manager.submit(inSlot('t6'));
    await settle();
    expect(manager.snapshot().results).toHaveLength(5);
  });

  it('is refused when its id works already, or has a result that nobody collected', async () => {
    const { manager, settle } = createManager();
    manager.submit(taskSpec('t1', async () => 0));
    const again = taskSpec('t1', async () => 0, { key: 'default/other' });
    expect(() => manager.submit(again)).toThrow('there is a task with this id already');
    await settle();
    expect(() => manager.submit(again)).toThrow('there is a task with this id already');
    manager.clean('t1');
    expect(() => manager.submit(again)).not.toThrow();
  });
});

describe('a task that takes too long', () => {
  it('is told so, and its result is the time-out', async () => {
    const { clock, manager, errors } = createManager();
    manager.submit(taskSpec('t1', obedient, { timeoutMs: 5_000 }));
    await clock.advance(4_999);
    expect(manager.working('t1')?.aborted).toBe(false);
    await clock.advance(1);
    expect(manager.result('t1')).toEqual(failedWith(expect.any(TimeoutError)));
    expect(errors).toEqual(['t1: make-pods was not done after 5 s']);
  });

  it('is not blamed for the time it waited for a place', async () => {
    const { clock, manager, settle } = createManager({ concurrency: { default: 1 } });
    const first = heldTask('t1');
    const second = heldTask('t2', { timeoutMs: 5_000 });
    manager.submit(first.spec);
    manager.submit(second.spec);
    await clock.advance(HOUR);
    first.succeed(undefined);
    await clock.advance(4_999);
    second.succeed('in time');
    await settle();
    expect(manager.result('t2')).toMatchObject({ status: 'successful', value: 'in time' });
  });

  it('may still succeed when it was nearly done', async () => {
    const { clock, manager, settle } = createManager();
    const task = heldTask('t1', { timeoutMs: 5_000 });
    manager.submit(task.spec);
    await clock.advance(20_000);
    expect(task.run.signal.reason).toBeInstanceOf(TimeoutError);
    task.succeed('after all');
    await settle();
    expect(manager.result('t1')).toMatchObject({ status: 'successful', value: 'after all' });
    expect(clock.pending).toBe(1);
  });

  it('may run for ever when it has no limit', async () => {
    const { clock, manager } = createManager();
    manager.submit(heldTask('t1').spec);
    await clock.advance(0);
    expect(clock.pending).toBe(0);
    await clock.advance(1_000 * HOUR);
    expect(manager.working('t1')?.aborted).toBe(false);
  });

  it('fails with the time-out, whatever it throws on its way out; the log has both', async () => {
    const { clock, manager, settle, errors } = createManager();
    const task = heldTask('t1', { timeoutMs: 5_000 });
    manager.submit(task.spec);
    await clock.advance(5_000);
    task.fail(new Error('connection was in use'));
    await settle();
    expect(manager.result('t1')).toEqual(failedWith(expect.any(TimeoutError)));
    expect(errors).toEqual(['t1: connection was in use', 't1: make-pods was not done after 5 s']);
  });
});

describe('a task that gives signs of life', () => {
  it('goes on as long as they come in time', async () => {
    const { clock, manager } = createManager();
    const task = heldTask('t1', { heartbeatMs: 10_000 });
    manager.submit(task.spec);
    for (let i = 0; i < 5; i++) {
      await clock.advance(9_000);
      task.run.heartbeat();
    }
    expect(manager.working('t1')?.aborted).toBe(false);
    await clock.advance(10_000);
    expect(task.run.signal.reason).toBeInstanceOf(HeartbeatTimeoutError);
  });

  it('ends when none ever came', async () => {
    const { clock, manager } = createManager();
    manager.submit(taskSpec('t1', obedient, { heartbeatMs: 10_000 }));
    await clock.advance(10_000);
    expect(manager.result('t1')).toEqual(
      failedWith(new HeartbeatTimeoutError('make-pods gave no sign of life for 10 s')),
    );
  });

  it('lets listeners know, and a bare sign of life keeps the last message', async () => {
    const { manager, settle } = createManager();
    const heard: string[] = [];
    const stop = manager.on('heartbeat', (kind, key, taskId) => heard.push(`${kind} ${key} ${taskId}`));
    const task = heldTask('t1');
    manager.submit(task.spec);
    await settle();
    task.run.heartbeat({ message: '3 of 5 pods' });
    task.run.heartbeat();
    expect(heard).toEqual(['Widget default/t1 t1', 'Widget default/t1 t1']);
    expect(manager.working('t1')?.progress?.message).toBe('3 of 5 pods');
    stop();
    task.run.heartbeat();
    task.succeed(undefined);
    await settle();
    task.run.heartbeat();
    expect(heard).toHaveLength(2);
  });
});

describe('a task that is called off', () => {
  it('ends as canceled, which is no error', async () => {
    const { manager, settle, errors } = createManager();
    manager.submit(taskSpec('t1', obedient));
    await settle();
    manager.abort('t1', 'deleted by its owner');
    manager.abort('t1', 'a second reason');
    manager.abort('unknown', 'no matter');
    expect(manager.isWorking('t1')).toBe(true);
    await settle();
    expect(manager.result('t1')).toEqual(failedWith(new CanceledError('deleted by its owner')));
    expect(errors).toEqual([]);
  });

  it('ends at once and never runs when it still waits for a place', async () => {
    const { manager, settle, settled } = createManager({ concurrency: { default: 1 } });
    const first = heldTask('t1');
    const second = heldTask('t2');
    manager.submit(first.spec);
    await settle();
    manager.submit(second.spec);
    manager.abort('t2', 'changed my mind');
    expect(manager.result('t2')).toEqual(failedWith(new CanceledError('changed my mind')));
    expect(settled).toEqual(['Widget default/t2 t2']);
    first.succeed(undefined);
    await settle();
    expect(second.ran).toBe(false);
  });

  it('never runs when that comes right after it was submitted', async () => {
    const { manager, settle } = createManager();
    const task = heldTask('t1');
    manager.submit(task.spec);
    manager.abort('t1', 'changed my mind');
    await settle();
    expect(task.ran).toBe(false);
  });

  it('goes on when it is critical, but not beyond its time limit', async () => {
    const { clock, manager } = createManager();
    manager.submit(taskSpec('t1', obedient, { critical: true, timeoutMs: 5_000 }));
    await clock.advance(0);
    manager.abort('t1', 'please');
    expect(manager.working('t1')?.aborted).toBe(false);
    await clock.advance(5_000);
    expect(manager.result('t1')).toEqual(failedWith(expect.any(TimeoutError)));
  });
});

describe('a task that ignores its signal', () => {
  function createObserved() {
    const detached: string[] = [];
    const observer: TaskManagerObserver = { detached: ({ taskId }) => detached.push(taskId) };
    return { detached, ...createManager({ observer, concurrency: { default: 1 } }) };
  }

  it('is detached after 30 s: its place and its slot are free, its late result is dropped', async () => {
    const { clock, manager, settle, settled, detached, errors } = createObserved();
    const deaf = heldTask('t1');
    const next = heldTask('t2', { key: 'default/t1' });
    const queued = heldTask('t3');
    manager.submit(deaf.spec);
    manager.submit(queued.spec);
    await settle();
    manager.abort('t1', 'enough');
    await clock.advance(29_999);
    expect([manager.isWorking('t1'), queued.ran, detached]).toEqual([true, false, []]);
    await clock.advance(1);
    expect([queued.ran, detached]).toEqual([true, ['t1']]);
    expect(manager.result('t1')).toEqual(failedWith(new CanceledError('enough')));
    manager.submit(next.spec);
    manager.clean('t1');
    deaf.run.heartbeat({ percent: 99 });
    deaf.fail(new Error('too late'));
    await settle();
    expect(manager.result('t1')).toBeUndefined();
    expect([settled, errors]).toEqual([['Widget default/t1 t1'], []]);
    expect(next.ran).toBe(false);
  });

  it('has as long to end as it asks for', async () => {
    const { clock, manager, detached } = createObserved();
    manager.submit(heldTask('t1', { timeoutMs: 1_000, settleMs: 2_000 }).spec);
    await clock.advance(2_999);
    expect(detached).toEqual([]);
    await clock.advance(1);
    expect(detached).toEqual(['t1']);
    expect(manager.result('t1')).toEqual(failedWith(expect.any(TimeoutError)));
  });

  it('is waited for without limit when it must not be detached', async () => {
    const { clock, manager, settle, detached } = createObserved();
    const task = heldTask('t1', { detachable: false, timeoutMs: 1_000 });
    manager.submit(task.spec);
    await clock.advance(100 * HOUR);
    expect([manager.isWorking('t1'), detached]).toEqual([true, []]);
    task.fail(new Error('at last'));
    await settle();
    expect(manager.result('t1')).toEqual(failedWith(expect.any(TimeoutError)));
  });
});

describe('when an object is gone', () => {
  it('nothing of it is left at once, and its slot can be used again', async () => {
    const { manager, settle, settled } = createManager();
    const key = 'default/w';
    const running = heldTask('t1', { key, branch: 'a' });
    manager.submit(running.spec);
    manager.submit(taskSpec('t2', async () => 2, { key, branch: 'b' }));
    manager.submit(taskSpec('t3', async () => 3, { key: 'default/neighbour' }));
    await settle();
    settled.length = 0;
    manager.purge('Widget', key);
    expect(running.run.signal.reason).toEqual(new CanceledError('Widget default/w is gone'));
    expect(manager.snapshot()).toEqual({ working: [], results: ['t3'] });
    manager.submit(taskSpec('t1', async () => 'new', { key, branch: 'a' }));
    running.succeed('old');
    await settle();
    expect(manager.result('t1')).toMatchObject({ value: 'new' });
    expect(settled).toEqual(['Widget default/w t1']);
  });

  it('its function keeps its place until it ends', async () => {
    const { manager, settle } = createManager({ concurrency: { default: 1 } });
    const purged = heldTask('t1');
    const next = heldTask('t2');
    manager.submit(purged.spec);
    await settle();
    manager.purge('Widget', 'default/t1');
    manager.submit(next.spec);
    await settle();
    purged.run.heartbeat();
    expect(next.ran).toBe(false);
    purged.fail(new Error('dropped'));
    await settle();
    expect(next.ran).toBe(true);
  });

  it('its function loses its place when it ignores that', async () => {
    const detached: string[] = [];
    const { clock, manager, errors } = createManager({
      concurrency: { default: 1 },
      observer: { detached: ({ taskId }) => detached.push(taskId) },
    });
    const next = heldTask('t2');
    manager.submit(heldTask('t1', { critical: true }).spec);
    manager.submit(next.spec);
    await clock.advance(0);
    manager.purge('Widget', 'default/t1');
    await clock.advance(30_000);
    expect([next.ran, detached, errors]).toEqual([true, ['t1'], []]);
    expect(manager.snapshot().results).toEqual([]);
  });

  it('what waited for a place never runs', async () => {
    const { manager, settle, settled } = createManager({ concurrency: { default: 1 } });
    const first = heldTask('t1');
    const queued = heldTask('t2');
    manager.submit(first.spec);
    manager.submit(queued.spec);
    manager.purge('Widget', 'default/t2');
    first.succeed(undefined);
    await settle();
    expect(queued.ran).toBe(false);
    expect(settled).toEqual(['Widget default/t1 t1']);
  });
});

describe('results', () => {
  it('that an object does not wait for any more are forgotten', async () => {
    const { manager, settle } = createManager();
    for (const taskId of ['t1', 't2', 't3'])
      manager.submit(taskSpec(taskId, async () => 0, { key: 'default/w', branch: taskId }));
    manager.submit(taskSpec('t4', async () => 0));
    await settle();
    manager.retain('Widget', 'default/w', new Set(['t2', 'unknown']));
    manager.retain('Widget', 'default/unknown', new Set());
    expect(manager.snapshot().results).toEqual(['t2', 't4']);
    manager.retain('Widget', 'default/w', new Set());
    expect(manager.snapshot().results).toEqual(['t4']);
  });

  it('that nobody collects are dropped after a day, each at its own time, with one timer', async () => {
    const dropped: string[] = [];
    const { clock, manager, settle } = createManager({ observer: { dropped: (id) => dropped.push(id) } });
    manager.submit(taskSpec('t1', async () => 1));
    await clock.advance(HOUR);
    manager.submit(taskSpec('t2', async () => 2));
    manager.submit(taskSpec('t3', async () => 3));
    await settle();
    expect(clock.pending).toBe(1);
    manager.clean('t2');
    await clock.advance(23 * HOUR);
    expect(dropped).toEqual(['t1']);
    expect(manager.result('t1')).toBeUndefined();
    await clock.advance(HOUR - 1);
    expect(manager.snapshot().results).toEqual(['t3']);
    await clock.advance(1);
    expect(dropped).toEqual(['t1', 't3']);
    expect(clock.pending).toBe(0);
  });

  it('need no timer once they are all collected', async () => {
    const { clock, manager, settle } = createManager();
    for (const taskId of ['t1', 't2']) manager.submit(taskSpec(taskId, async () => 0));
    await settle();
    manager.clean('t1');
    expect(clock.pending).toBe(1);
    manager.purge('Widget', 'default/t2');
    expect(clock.pending).toBe(0);
  });
});

describe('whoever watches', () => {
  it('cannot disturb anything by throwing; the log has it', async () => {
    const boom = (what: string) => () => {
      throw new Error(`${what} broke`);
    };
    const { clock, manager, settled, errors } = createManager({
      observer: {
        started: boom('started'),
        settled: boom('settled'),
        detached: boom('detached'),
        dropped: boom('dropped'),
      },
    });
    manager.on('settled', boom('listener'));
    manager.on('heartbeat', boom('heartbeat'));
    const later = vi.fn<() => void>();
    manager.on('settled', later);
    const task = heldTask('t1', { timeoutMs: 1_000 });
    manager.submit(task.spec);
    await clock.advance(0);
    task.run.heartbeat();
    await clock.advance(31_000);
    expect(manager.result('t1')).toEqual(failedWith(expect.any(TimeoutError)));
    expect(later).toHaveBeenCalledWith('Widget', 'default/t1', 't1');
    expect(settled).toHaveLength(1);
    expect(errors).toEqual([
      't1: started broke',
      't1: heartbeat broke',
      't1: detached broke',
      't1: make-pods was not done after 1 s',
      't1: settled broke',
      't1: listener broke',
    ]);
    await clock.advance(24 * HOUR);
    expect(manager.snapshot().results).toEqual([]);
  });

  it('cannot disturb anything even when the log throws', async () => {
    const { manager, settle } = createManager({
      onError: () => {
        throw new Error('log broke');
      },
    });
    manager.submit(taskSpec('t1', () => Promise.reject(new Error('disk full'))));
    await settle();
    expect(manager.result('t1')).toEqual(failedWith(new Error('disk full')));
  });

  it('sees every start and every end, how it ended and how long it ran', async () => {
    const seen: unknown[] = [];
    const { clock, manager, settle } = createManager({
      observer: {
        started: ({ taskId, startedAt }) => seen.push(['started', taskId, startedAt]),
        settled: ({ taskId }, { status }, ms) => seen.push([status, taskId, ms]),
      },
    });
    const startedAt = clock.now();
    const done = heldTask('t1');
    manager.submit(done.spec);
    manager.submit(heldTask('t2').spec);
    await clock.advance(3_000);
    done.succeed(undefined);
    await settle();
    manager.purge('Widget', 'default/t2');
    expect(seen).toEqual([
      ['started', 't1', startedAt],
      ['started', 't2', startedAt],
      ['successful', 't1', 3_000],
      ['failed', 't2', 3_000],
    ]);
  });

  it('hears nothing any more after it stopped listening', async () => {
    const { manager, settle } = createManager();
    const heard = vi.fn<() => void>();
    const stop = manager.on('settled', heard);
    manager.on('settled', heard);
    stop();
    stop();
    manager.submit(taskSpec('t1', async () => 0));
    await settle();
    expect(heard).toHaveBeenCalledTimes(1);
  });
});

describe('when the operator shuts down', () => {
  it('has nothing to wait for when nothing works', async () => {
    const { manager } = createManager();
    expect(await manager.drain(25_000)).toEqual([]);
    expect(() => manager.submit(taskSpec('t1', async () => 0))).toThrow(
      'Task t1 (create / make-pods) cannot start: the task manager takes no more tasks',
    );
  });

  it('tasks are asked to end, those that wait for a place never run, critical ones are waited for', async () => {
    const { clock, manager, settle } = createManager({ concurrency: { sql: 1 } });
    const critical = heldTask('critical', { critical: true });
    const queued = heldTask('queued', { poolClass: 'sql' });
    manager.submit(taskSpec('running', obedient, { poolClass: 'sql' }));
    manager.submit(queued.spec);
    manager.submit(critical.spec);
    await settle();
    const drained = manager.drain(25_000);
    await clock.advance(20_000);
    expect(manager.snapshot().working.map(({ taskId }) => taskId)).toEqual(['critical']);
    expect(manager.working('critical')?.aborted).toBe(false);
    critical.succeed('whole');
    expect(await drained).toEqual([]);
    expect(manager.result('critical')).toMatchObject({ value: 'whole' });
    expect(manager.result('running')).toEqual(failedWith(new CanceledError('The operator is shutting down')));
    expect(queued.ran).toBe(false);
    expect(clock.pending).toBe(0);
  });

  it('somebody is told what is still alive when time is up, also of objects that are gone', async () => {
    const { clock, manager } = createManager();
    for (const taskId of ['deaf', 'purged', 'critical'])
      manager.submit(heldTask(taskId, { critical: taskId === 'critical' }).spec);
    await clock.advance(0);
    manager.purge('Widget', 'default/purged');
    const drained = manager.drain(25_000);
    await clock.advance(25_000);
    expect(await drained).toEqual(['deaf', 'purged', 'critical']);
    const again = manager.drain(10_000);
    await clock.advance(10_000);
    expect(await again).toEqual(['critical']);
  });
});
