import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { findCondition, isConditionTrue, removeCondition, setCondition } from './conditions.ts';

const READY = {
  type: 'Ready',
  status: false,
  reason: 'Starting',
  message: 'one of three',
  observedGeneration: 1,
};

describe('conditions', () => {
  it('a new one gets the time of now, in whole seconds', () => {
    const clock = manualClock(Date.UTC(2026, 0, 1, 0, 0, 0, 123));
    expect(setCondition(undefined, READY, clock)).toEqual([
      { ...READY, status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ]);
  });

  it('the time stays while the status does, and moves with it', async () => {
    const clock = manualClock(Date.UTC(2026, 0, 1));
    const first = setCondition([], READY, clock);
    await clock.advance(60_000);
    const second = setCondition(first, { ...READY, message: 'two of three', observedGeneration: 2 }, clock);
    expect(second[0]).toMatchObject({
      message: 'two of three',
      observedGeneration: 2,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    });
    const third = setCondition(second, { ...READY, status: 'True', reason: 'Done' }, clock);
    expect(third[0]).toMatchObject({ status: 'True', lastTransitionTime: '2026-01-01T00:01:00Z' });
    expect(isConditionTrue(third, 'Ready')).toBe(true);
    expect(isConditionTrue(second, 'Ready')).toBe(false);
  });

  it('nothing new is the very same list, so nothing is written', async () => {
    const clock = manualClock(Date.UTC(2026, 0, 1));
    const first = setCondition([], READY, clock);
    await clock.advance(60_000);
    expect(setCondition(first, READY, clock)).toBe(first);
    expect(removeCondition(first, 'Other')).toBe(first);
  });

  it('keep their places; what was given is not changed', () => {
    const clock = manualClock(Date.UTC(2026, 0, 1));
    const two = setCondition(setCondition([], READY, clock), { ...READY, type: 'Paused' }, clock);
    const changed = setCondition(two, { ...READY, status: true }, clock);
    expect(changed.map(({ type, status }) => [type, status])).toEqual([
      ['Ready', 'True'],
      ['Paused', 'False'],
    ]);
    expect(findCondition(two, 'Ready')?.status).toBe('False');
    expect(removeCondition(changed, 'Ready').map(({ type }) => type)).toEqual(['Paused']);
    expect(findCondition(undefined, 'Ready')).toBeUndefined();
  });
});
