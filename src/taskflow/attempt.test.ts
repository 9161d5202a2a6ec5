import { describe, expect, it } from 'vitest';
import { advanceAttempt, type TaskRules } from './attempt.ts';
import type { LiveTask } from './operation-context.ts';
import { type AttemptView, iso, type World } from './world.ts';

const NOW = Date.parse('2030-01-01T10:00:00Z');
const RULES: TaskRules = { timeoutMs: 60_000, onInterrupt: 'rerun' };
const PENDING: LiveTask = { task: 'copy', taskId: '', taskStatus: 'pending', attempt: 2 };
const RUNNING: LiveTask = { ...PENDING, taskStatus: 'running', taskId: 'old', startedAt: iso(NOW - 10_000) };
const WAITING: LiveTask = {
  ...PENDING,
  taskId: 'next',
  nextAt: iso(NOW - 1),
  waitingFor: 'the disk',
  startedAt: iso(NOW - 10_000),
};

interface Case {
  readonly slot: LiveTask;
  readonly view?: AttemptView;
  readonly rules?: TaskRules | undefined;
  readonly paused?: boolean;
  readonly nudged?: boolean;
  readonly ownerEpoch?: number;
}

function step({
  slot,
  view = { state: 'unknown' },
  paused = false,
  nudged = false,
  ownerEpoch = 1,
  ...rest
}: Case) {
  const world: World = {
    now: NOW,
    self: { holder: 'me', epoch: 7 },
    paused,
    nudged,
    limits: { maxRetry: 99, backoffThreshold: 16, maxDelayMs: 300_000 },
    view: () => view,
    newId: () => 'new',
    random: () => 0.5,
  };
  const rules = 'rules' in rest ? rest.rules : RULES;
  const result = advanceAttempt(slot, rules, world, {
    owner: { holder: 'him', epoch: ownerEpoch },
    branch: '',
  });
  const starts = result.effects.flatMap((effect) => (effect.kind === 'start' ? [effect] : []));
  const events = result.effects.flatMap((effect) => (effect.kind === 'event' ? [effect.reason] : []));
  return { ...result, starts, events };
}

const settled = (outcome: Extract<AttemptView, { state: 'settled' }>['outcome']): AttemptView => ({
  state: 'settled',
  outcome,
});

describe('an attempt', () => {
  it('is claimed with a new id, and keeps its number', () => {
    const { slot, starts } = step({ slot: PENDING });
    expect(slot).toMatchObject({ taskStatus: 'running', taskId: 'new', attempt: 2, startedAt: iso(NOW) });
    expect(starts).toMatchObject([{ taskId: 'new', attempt: 2, timeoutMs: 60_000, reattach: false }]);
  });

  it.each<[string, Case, object]>([
    ['is not claimed while paused', { slot: PENDING, paused: true }, { slot: PENDING }],
    ['waits for its moment', { slot: { ...PENDING, nextAt: iso(NOW + 500) } }, { until: NOW + 500 }],
    [
      'fails for good where nobody knows the task',
      { slot: PENDING, rules: undefined },
      { settled: 'failed', slot: { lastError: { reason: 'UnknownTask', retryable: false } } },
    ],
    ['runs on', { slot: RUNNING, view: { state: 'working' } }, { slot: RUNNING }],
    [
      'succeeds, with what it wants in the status',
      { slot: RUNNING, view: settled({ kind: 'done', status: { size: 3 } }) },
      { settled: 'successful', patches: [{ size: 3 }] },
    ],
    [
      'fails',
      {
        slot: RUNNING,
        view: settled({ kind: 'failed', error: { reason: 'E', message: 'm', retryable: true } }),
      },
      {
        settled: 'failed',
        slot: { lastError: { task: 'copy', attempt: 2, message: 'm' } },
        events: ['TaskFailed'],
      },
    ],
    [
      'waits, with the id of its next run',
      { slot: RUNNING, view: settled({ kind: 'wait', at: NOW, ms: 5_000, reason: 'the disk' }) },
      {
        slot: {
          taskStatus: 'pending',
          taskId: 'new',
          nextAt: iso(NOW + 5_000),
          waitingFor: 'the disk',
          startedAt: iso(NOW - 10_000),
        },
        until: NOW + 5_000,
      },
    ],
    ['was cancelled', { slot: RUNNING, view: settled({ kind: 'canceled' }) }, { settled: 'canceled' }],
    [
      'of another process is run again under the same number',
      { slot: RUNNING },
      {
        slot: { taskStatus: 'running', taskId: 'new', attempt: 2, interruptions: 1 },
        events: ['TaskInterrupted'],
      },
    ],
    [
      'of this process that is gone has lost its result',
      { slot: RUNNING, ownerEpoch: 7 },
      { settled: 'failed', slot: { lastError: { reason: 'ResultLost', retryable: true } } },
    ],
    [
      'fails when its operator is killed again and again',
      { slot: { ...RUNNING, interruptions: 20 } },
      { settled: 'failed', slot: { lastError: { reason: 'Interrupted' } } },
    ],
    [
      'fails when interrupted, if its author says so',
      { slot: RUNNING, rules: { ...RULES, onInterrupt: 'fail' } },
      { settled: 'failed' },
    ],
    ['is not taken up while paused', { slot: RUNNING, paused: true }, { slot: RUNNING }],
    [
      'that waited too long has timed out',
      { slot: { ...PENDING, startedAt: iso(NOW - 60_001), waitingFor: 'x' } },
      { settled: 'failed', slot: { lastError: { reason: 'TimeoutError' } }, events: ['TaskTimeout'] },
    ],
  ])('%s', (_, given, expected) => {
    expect(step(given)).toMatchObject(expected);
  });

  it('whose claim got no answer begins under the stored id', () => {
    const { slot, starts } = step({ slot: RUNNING, view: { state: 'unstarted' } });
    expect(slot).toBe(RUNNING);
    expect(starts).toMatchObject([{ taskId: 'old', timeoutMs: 50_000 }]);
  });

  it('finds its work again where it can', () => {
    const { starts } = step({ slot: RUNNING, rules: { ...RULES, onInterrupt: 'reattach' } });
    expect(starts).toMatchObject([{ reattach: true }]);
  });

  it('that waits is asked again without a write, as long as it says the same', () => {
    const same = settled({ kind: 'wait', at: NOW - 5_000, ms: 5_000, reason: 'the disk' });
    const again = step({ slot: WAITING, view: same });
    expect(again.slot).toBe(WAITING);
    expect(again.starts).toMatchObject([{ taskId: 'next', timeoutMs: 50_000 }]);
    expect(step({ slot: WAITING }).starts).toMatchObject([{ taskId: 'next' }]);
    const other = step({
      slot: WAITING,
      view: settled({ kind: 'wait', at: NOW, ms: 5_000, reason: 'the network' }),
    });
    expect(other.slot).toMatchObject({ waitingFor: 'the network', taskId: 'new' });
    const notYet = step({
      slot: WAITING,
      view: settled({ kind: 'wait', at: NOW, ms: 5_000, reason: 'the disk' }),
    });
    expect(notYet).toMatchObject({ slot: WAITING, until: NOW + 5_000, starts: [] });
    const nudged = step({ slot: { ...WAITING, nextAt: iso(NOW + 5_000) }, nudged: true });
    expect(nudged.starts).toMatchObject([{ taskId: 'next' }]);
  });
});
