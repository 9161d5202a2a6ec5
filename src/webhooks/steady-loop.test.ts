import { describe, expect, it } from 'vitest';
import { SteadyLoop } from './steady-loop.ts';
import { type Clock, clockFrom, systemClock } from '../kube/clock.ts';

/** Counts the runs; `next` says what each returns or throws. */
function looping(next: (run: number) => Promise<number | undefined>, clock: Clock = systemClock) {
  const errors: unknown[] = [];
  const runs: { count: number; reached: Map<number, () => void> } = { count: 0, reached: new Map() };
  const loop = new SteadyLoop({
    clock,
    onError: (error) => errors.push(error),
    work: () => {
      runs.count++;
      runs.reached.get(runs.count)?.();
      return next(runs.count);
    },
  });
  const reached = (count: number): Promise<void> =>
    runs.count >= count
      ? Promise.resolve()
      : new Promise((resolve) => {
          runs.reached.set(count, resolve);
        });
  return { loop, errors, reached, runs };
}

/** A clock on which everything is due at once, and which tells what was asked of it. */
function hastyClock(asked: number[]): Clock {
  return clockFrom({
    now: () => 0,
    monotonic: () => 0,
    after(ms: number, run: () => void) {
      asked.push(ms);
      const immediate = setImmediate(run);
      return () => clearImmediate(immediate);
    },
  });
}

describe('SteadyLoop', () => {
  it('runs at the start and at each wake, and not otherwise', async () => {
    const { loop, reached, runs } = looping(() => Promise.resolve(undefined));
    loop.start();
    await reached(1);
    loop.wake();
    await reached(2);
    await loop.stop();
    expect(runs.count).toBe(2);
  });

  it('makes one more run of many wakes during a run', async () => {
    const gate = Promise.withResolvers<undefined>();
    const { loop, reached, runs } = looping((run) => (run === 1 ? gate.promise : Promise.resolve(undefined)));
    loop.start();
    await reached(1);
    for (let wake = 0; wake < 10; wake++) loop.wake();
    gate.resolve(undefined);
    await reached(2);
    await loop.stop();
    expect(runs.count).toBe(2);
  });

  it('runs when it is due by itself', async () => {
    const asked: number[] = [];
    const { loop, reached } = looping(
      (run) => Promise.resolve(run < 4 ? 1000 * run : undefined),
      hastyClock(asked),
    );
    loop.start(500);
    await reached(4);
    await loop.stop();
    expect(asked).toEqual([500, 1000, 2000, 3000]);
  });

  it('tries again ever later after a failure, and at once when woken', async () => {
    const asked: number[] = [];
    const { loop, reached, errors } = looping(
      (run) => (run <= 9 ? Promise.reject(new Error(`run ${run}`)) : Promise.resolve(undefined)),
      hastyClock(asked),
    );
    loop.start();
    await reached(10);
    await loop.stop();
    expect(errors).toHaveLength(9);
    expect(asked.every((ms) => ms >= 250 && ms <= 30_000)).toBe(true);
    expect(asked[5]).toBeGreaterThan(asked[0] ?? Infinity);
  });

  it('stops while it waits for something far away', async () => {
    const { loop, reached, runs } = looping(() => Promise.resolve(24 * 3600 * 1000));
    loop.start();
    await reached(1);
    await loop.stop();
    expect(runs.count).toBe(1);
  });
});
