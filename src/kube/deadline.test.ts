import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { Deadline } from './deadline.ts';

describe('Deadline', () => {
  it('aborts when its time is up, and says that it was time', async () => {
    const clock = manualClock();
    using deadline = new Deadline(clock, 100, undefined);
    await clock.advance(99);
    expect(deadline.signal.aborted).toBe(false);
    expect(deadline.remainingMs).toBe(1);
    await clock.advance(1);
    expect(deadline).toMatchObject({ expired: true, signal: { aborted: true } });
  });

  it('aborts with the caller, and says that it was not time', () => {
    const caller = new AbortController();
    using deadline = new Deadline(manualClock(), 100, caller.signal);
    caller.abort(new Error('enough'));
    expect(deadline.expired).toBe(false);
    expect(deadline.signal.reason).toEqual(new Error('enough'));
  });

  it('a caller that has aborted before counts', () => {
    using deadline = new Deadline(manualClock(), 100, AbortSignal.abort());
    expect(deadline.signal.aborted).toBe(true);
  });

  it('leaves no timer behind, and 0 is no limit', () => {
    const clock = manualClock();
    {
      using deadline = new Deadline(clock, 100, undefined);
      expect(clock.pending).toBe(1);
      expect(deadline.expired).toBe(false);
    }
    using unlimited = new Deadline(clock, 0, undefined);
    expect(clock.pending).toBe(0);
    expect(unlimited.remainingMs).toBe(Infinity);
  });
});
