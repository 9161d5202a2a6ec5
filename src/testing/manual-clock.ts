/** A clock that stands still until a test moves it, so that hours cost nothing. */
import { type Clock, clockFrom } from '../kube/clock.ts';

export interface ManualClock extends Clock {
  /** Moves time on, running what falls due in order; promises that follow from it settle before it returns. */
  advance(ms: number): Promise<void>;
  /** How many timers wait. */
  readonly pending: number;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

export function manualClock(start = Date.parse('2030-01-01T00:00:00Z')): ManualClock {
  let now = start;
  const timers = new Set<Timer>();
  const clock = clockFrom({
    now: () => now,
    after(ms, run) {
      const timer = { at: now + Math.max(0, ms), run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  });
  return {
    ...clock,
    get pending() {
      return timers.size;
    },
    async advance(ms) {
      const end = now + ms;
      await settle();
      for (;;) {
        const next = [...timers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
        if (!next) break;
        timers.delete(next);
        now = next.at;
        next.run();
        await settle();
      }
      now = end;
    },
  };
}

/** Lets everything run that waits for nothing but its turn. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
