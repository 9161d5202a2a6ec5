import { describe, expect, it } from 'vitest';
import { backoffMs, endOfFailed, type Failures, undoContext } from './failure.ts';
import type { LastError, OperationContext } from './operation-context.ts';
import type { World } from './world.ts';

const NOW = Date.parse('2030-01-01T10:00:00Z');
const LIMITS = { maxRetry: 99, backoffThreshold: 16, maxDelayMs: 300_000 };
const world: World = {
  now: NOW,
  self: { holder: 'me', epoch: 1 },
  paused: false,
  nudged: false,
  limits: LIMITS,
  view: () => ({ state: 'unknown' }),
  newId: () => 'new',
  random: () => 0.5,
};
const ERROR: LastError = { task: 'b', attempt: 1, reason: 'Error', message: 'm', at: '', retryable: true };

function failed(rule: Partial<OperationContext['failureRule']>, error: LastError = ERROR): OperationContext {
  return {
    name: 'work',
    tasks: ['a', 'b'],
    task: 'b',
    idx: 2,
    taskStatus: 'failed',
    taskId: 'id',
    targetStatus: 'done',
    failureRule: { failureStrategy: 'retry from current', failureStatus: 'failed', ...rule },
    attempt: 1,
    lastError: error,
  };
}

const end = (context: OperationContext, failures?: Failures, current = 'new') =>
  endOfFailed(context, failures, { current, failed: 'broken' }, world);

describe('the delay', () => {
  it.each([
    [1, 1_000],
    [2, 2_000],
    [5, 16_000],
    [9, 256_000],
    [10, 300_000],
    [10_000, 300_000],
  ])('after %i failures is %i ms', (failures, ms) => {
    expect(backoffMs(failures, LIMITS, () => 0.5)).toBe(ms);
    expect(backoffMs(failures, LIMITS, () => 0)).toBe(ms * 0.8);
    expect(backoffMs(failures, LIMITS, () => 1)).toBe(ms * 1.2);
  });
});

describe('a failure', () => {
  it('is tried again from the task that failed', () => {
    expect(end(failed({}))).toMatchObject({
      kind: 'on',
      context: {
        idx: 2,
        task: 'b',
        taskStatus: 'pending',
        taskId: '',
        attempt: 2,
        failureRule: { retryCount: 1 },
      },
      failures: { flow: 'work', count: 1 },
    });
  });

  it('is tried again from the start, where the state stays', () => {
    const result = end(failed({ failureStrategy: 'retry over', failureStatus: 'new' }));
    expect(result).toMatchObject({ kind: 'on', context: { idx: 0, task: '', taskStatus: '' } });
  });

  it('leaves for the failure status, and counts on when it comes back', () => {
    const context = failed({ failureStrategy: 'retry over', failureStatus: 'running' });
    expect(end(context)).toMatchObject({
      kind: 'leave',
      result: 'Failed',
      status: 'running',
      failures: { count: 1 },
    });
    const nth = end(context, { flow: 'work', count: 4 });
    expect(nth).toMatchObject({ failures: { count: 5 } });
    expect(end(context, { flow: 'other', count: 4 })).toMatchObject({ failures: { count: 1 } });
  });

  it('is given up after too many, in the kind’s own failed state', () => {
    expect(end(failed({ maxRetry: 3 }), { flow: 'work', count: 3 })).toMatchObject({
      kind: 'leave',
      result: 'Archived',
      status: 'broken',
    });
    expect(end(failed({ maxRetry: 0 }), { flow: 'work', count: 98 })).toMatchObject({ kind: 'on' });
    expect(end(failed({ maxRetry: 0 }), { flow: 'work', count: 99 })).toMatchObject({ result: 'Archived' });
  });

  it.each<[string, OperationContext, object]>([
    [
      'for good is not tried again',
      failed({}, { ...ERROR, retryable: false }),
      { kind: 'leave', result: 'Failed', status: 'failed' },
    ],
    ['waits for a person', failed({ failureStrategy: 'Pause' }), { kind: 'stay' }],
    [
      'without a strategy ends the flow',
      failed({ failureStrategy: '' }),
      { kind: 'leave', result: 'Failed', status: 'failed' },
    ],
    [
      'without a strategy or status goes to the failed state',
      failed({ failureStrategy: '', failureStatus: '' }),
      { status: 'broken' },
    ],
  ])('%s', (_, context, expected) => {
    expect(end(context)).toMatchObject(expected);
  });
});

describe('undoing', () => {
  const finished = ['a', 'b', 'c'].map((task) => ({
    task,
    attempts: 1,
    durationMs: 1,
    result: 'successful' as const,
  }));
  const undoOf = (task: string): string | undefined => (task === 'b' ? undefined : `undo ${task}`);

  it('goes backwards over what was finished', () => {
    const undo = undoContext(
      { ...failed({}), finished },
      undoOf,
      { result: 'Failed', status: 'failed' },
      NOW,
    );
    expect(undo).toMatchObject({
      tasks: ['undo c', 'undo a'],
      compensating: true,
      undoneFor: 'Failed',
      targetStatus: 'failed',
      idx: 0,
    });
  });

  it('is not itself undone, and is nothing where nothing was done', () => {
    const to = { result: 'Failed' as const, status: 'failed' };
    expect(undoContext({ ...failed({}), finished, compensating: true }, undoOf, to, NOW)).toBeUndefined();
    expect(undoContext(failed({}), undoOf, to, NOW)).toBeUndefined();
  });
});
