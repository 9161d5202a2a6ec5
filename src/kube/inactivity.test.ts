import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { Inactivity } from './inactivity.ts';

describe('Inactivity', () => {
  it('tells once nothing was touched for its time', async () => {
    const clock = manualClock();
    let silent = 0;
    using inactivity = new Inactivity(clock, 75_000, () => silent++);
    await clock.advance(70_000);
    inactivity.touch();
    await clock.advance(74_000);
    expect(silent).toBe(0);
    await clock.advance(1_000);
    expect(silent).toBe(1);
  });

  it('leaves no timer behind', () => {
    const clock = manualClock();
    {
      using inactivity = new Inactivity(clock, 1_000, () => {});
      inactivity.touch();
    }
    expect(clock.pending).toBe(0);
  });
});
