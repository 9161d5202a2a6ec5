/** Time as a dependency, so that tests can run hours in milliseconds. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds since an arbitrary moment; unlike `now`, never set by anybody. */
  monotonic(): number;
  /** Calls `run` once after `ms`; the function it returns calls that off. */
  after(ms: number, run: () => void): () => void;
  /** Resolves after `ms`, or at once when the signal aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Node turns a longer delay into 1 ms. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

export const systemClock: Clock = clockFrom({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, Math.min(Math.max(0, ms), LONGEST_DELAY_MS));
    return () => clearTimeout(timer);
  },
});

/** The rest of a clock, given its basic operations. Without `monotonic`, `now` is never set back. */
export function clockFrom(basic: Pick<Clock, 'now' | 'after'> & Partial<Pick<Clock, 'monotonic'>>): Clock {
  return {
    monotonic: () => basic.now(),
    ...basic,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const done = (): void => {
          cancel();
          signal?.removeEventListener('abort', done);
          resolve();
        };
        const cancel = basic.after(ms, done);
        signal?.addEventListener('abort', done, { once: true });
      }),
  };
}
