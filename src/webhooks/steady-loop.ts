/**
 * Work that is done once at the start, again whenever something wakes it, and
 * again when it said it would be due. One run at a time: a wake during a run
 * means one more run after it. A run that fails is tried again, ever later,
 * and the loop itself ends only by stop().
 */
import type { Clock } from '../kube/clock.ts';

export interface SteadyLoopOptions {
  /** Returns in how many milliseconds it is due by itself; undefined if only a wake can make it so. */
  readonly work: (signal: AbortSignal) => Promise<number | undefined>;
  readonly onError: (error: unknown) => void;
  readonly clock: Clock;
}

const RETRY = { firstMs: 500, maxMs: 30_000 };

export class SteadyLoop {
  readonly #options: SteadyLoopOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #woken = Promise.withResolvers<void>();

  constructor(options: SteadyLoopOptions) {
    this.#options = options;
  }

  wake(): void {
    this.#woken.resolve();
  }

  /** `dueMs`: when the first run is due; at once by default. */
  start(dueMs?: number): void {
    this.#running ??= this.#run(dueMs);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(firstDueMs: number | undefined): Promise<void> {
    const { signal } = this.#stopping;
    let failures = 0;
    if (firstDueMs !== undefined) await this.#pause(firstDueMs);
    while (!signal.aborted) {
      let dueMs: number | undefined;
      // What wakes us from here on is not in what this run will see.
      this.#woken = Promise.withResolvers();
      try {
        dueMs = await this.#options.work(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        this.#options.onError(error);
        dueMs = Math.min(RETRY.maxMs, RETRY.firstMs * 2 ** failures++) * (0.5 + Math.random() / 2);
      }
      await this.#pause(dueMs);
    }
  }

  async #pause(dueMs: number | undefined): Promise<void> {
    if (dueMs === undefined) return this.#wokenOrStopped();
    const over = new AbortController();
    const due = this.#options.clock.sleep(dueMs, over.signal);
    await Promise.race([due, this.#wokenOrStopped()]);
    over.abort();
  }

  async #wokenOrStopped(): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = (): void => resolve();
    signal.addEventListener('abort', stop, { once: true });
    await Promise.race([this.#woken.promise, promise]);
    signal.removeEventListener('abort', stop);
  }
}

/**
 * What was deleted between the first look and the first list is no change to
 * the watch, which never knew it: one more look when the watch is up.
 */
export function wakeWhenSynced({ synced }: { readonly synced: Promise<void> }, loop: SteadyLoop): void {
  synced.then(
    () => loop.wake(),
    () => {},
  );
}
