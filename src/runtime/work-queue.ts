/**
 * The queue between events and workers. A key is in it at most once, however
 * often it is added, and with at most one worker; added while a worker has it,
 * it comes again when that worker is done. What users change goes before what
 * we only look at again. Failures wait, longer each time, and all failures
 * together pass through one bucket, so that a broken cluster is not hammered.
 */
import { type Clock, systemClock } from '../kube/clock.ts';

/** `normal`: something changed. `background`: first list, resync, periodic look. */
export type Priority = 'normal' | 'background';

export interface WorkQueueOptions {
  readonly clock?: Clock;
  /** 0 to 1; for the jitter of delays. */
  readonly random?: () => number;
  readonly backoff?: { readonly baseMs: number; readonly maxMs: number };
  /** Failures of all keys together. */
  readonly bucket?: { readonly perSecond: number; readonly burst: number };
  readonly observer?: QueueObserver;
}

/** Hears of everything that metrics are made of. */
export interface QueueObserver {
  added?(): void;
  retried?(): void;
  started?(waitedMs: number): void;
  finished?(workedMs: number): void;
}

const PRIORITIES: readonly Priority[] = ['normal', 'background'];
const DEFAULT_BACKOFF = { baseMs: 5, maxMs: 300_000 };
const DEFAULT_BUCKET = { perSecond: 10, burst: 100 };
const JITTER = 0.2;

interface Delayed {
  readonly at: number;
  readonly priority: Priority;
  readonly cancel: () => void;
}

export class WorkQueue {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #backoff: { readonly baseMs: number; readonly maxMs: number };
  readonly #bucket: TokenBucket;
  readonly #observer: QueueObserver;
  /** Insertion order is the order of work. The value is when the key was added. */
  readonly #ready: Readonly<Record<Priority, Map<string, number>>> = {
    normal: new Map(),
    background: new Map(),
  };
  readonly #working = new Map<string, number>();
  /** Added again while a worker has it. */
  readonly #again = new Map<string, Priority>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #failures = new Map<string, number>();
  readonly #idle: ((key: string | undefined) => void)[] = [];
  #closed = false;

  constructor(options: WorkQueueOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#backoff = options.backoff ?? DEFAULT_BACKOFF;
    this.#bucket = new TokenBucket(options.bucket ?? DEFAULT_BUCKET, this.#clock);
    this.#observer = options.observer ?? {};
  }

  add(key: string, priority: Priority = 'normal'): void {
    if (this.#closed) return;
    this.#undelay(key);
    if (this.#working.has(key)) {
      if (this.#again.get(key) !== 'normal') this.#again.set(key, priority);
      return;
    }
    if (this.#ready.normal.has(key)) return;
    const since = this.#ready.background.get(key);
    if (since !== undefined && priority === 'background') return;
    this.#ready.background.delete(key);
    this.#observer.added?.();
    this.#ready[priority].set(key, since ?? this.#clock.now());
    this.#hand();
  }

  /** Of several delays the shortest counts; a key that is ready already stays so. */
  addAfter(key: string, ms: number, priority: Priority = 'background'): void {
    if (this.#closed) return;
    if (ms <= 0) return this.add(key, priority);
    const at = this.#clock.now() + ms;
    const before = this.#delayed.get(key);
    if (before && before.at <= at) return;
    before?.cancel();
    const cancel = this.#clock.after(ms, () => {
      this.#delayed.delete(key);
      this.add(key, priority);
    });
    this.#delayed.set(key, { at, priority, cancel });
  }

  /** After a failure: later each time, until forget(). Returns the delay. */
  addRateLimited(key: string, atLeastMs = 0): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.#observer.retried?.();
    const own = Math.min(this.#backoff.maxMs, this.#backoff.baseMs * 2 ** failures);
    const spread = own * (1 + JITTER * (2 * this.#random() - 1));
    const delay = Math.max(spread, this.#bucket.take(), atLeastMs);
    this.addAfter(key, delay, 'normal');
    return delay;
  }

  /** The key did well: its next failure waits as briefly as its first. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  failuresOf(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key, when there is one; undefined once the queue is closed. Answer with done(). */
  async next(): Promise<string | undefined> {
    const key = this.#take();
    if (key !== undefined || this.#closed) return key;
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  done(key: string): void {
    const since = this.#working.get(key);
    if (since === undefined) return;
    this.#working.delete(key);
    this.#observer.finished?.(this.#clock.now() - since);
    const again = this.#again.get(key);
    this.#again.delete(key);
    if (again) this.add(key, again);
  }

  /** Nothing comes in or out any more; what is with a worker may finish. */
  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    for (const priority of PRIORITIES) this.#ready[priority].clear();
    this.#again.clear();
    for (const resolve of this.#idle.splice(0)) resolve(undefined);
  }

  depth(priority: Priority): number {
    return this.#ready[priority].size;
  }

  get workingCount(): number {
    return this.#working.size;
  }

  /** How long the worker with the oldest key has had it, in milliseconds. */
  get longestWorkMs(): number {
    const [oldest] = this.#working.values();
    return oldest === undefined ? 0 : this.#clock.now() - oldest;
  }

  /** Ages of all work under way, added up. */
  get unfinishedWorkMs(): number {
    const now = this.#clock.now();
    return [...this.#working.values()].reduce((sum, since) => sum + (now - since), 0);
  }

  /** What the queue holds, for the debug endpoint. */
  snapshot(): { ready: string[]; working: string[]; delayed: { key: string; inMs: number }[] } {
    const now = this.#clock.now();
    return {
      ready: PRIORITIES.flatMap((priority) => [...this.#ready[priority].keys()]),
      working: [...this.#working.keys()],
      delayed: [...this.#delayed].map(([key, { at }]) => ({ key, inMs: at - now })),
    };
  }

  #hand(): void {
    const waiting = this.#idle.shift();
    if (waiting) waiting(this.#take());
  }

  #take(): string | undefined {
    for (const priority of PRIORITIES) {
      const [entry] = this.#ready[priority];
      if (!entry) continue;
      const [key, since] = entry;
      this.#ready[priority].delete(key);
      const now = this.#clock.now();
      this.#working.set(key, now);
      this.#observer.started?.(now - since);
      return key;
    }
    return undefined;
  }

  /** An event makes the wait pointless: whoever works on the key now sees what the delay was for. */
  #undelay(key: string): void {
    this.#delayed.get(key)?.cancel();
    this.#delayed.delete(key);
  }
}

/** So many at once, then so many a second; tells how long to wait rather than waiting. */
class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  readonly #clock: Clock;
  #tokens: number;
  #at: number;

  constructor({ perSecond, burst }: { perSecond: number; burst: number }, clock: Clock) {
    this.#perMs = perSecond / 1000;
    this.#burst = burst;
    this.#clock = clock;
    this.#tokens = burst;
    this.#at = clock.now();
  }

  take(): number {
    const now = this.#clock.now();
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#perMs) - 1;
    this.#at = now;
    return this.#tokens >= 0 ? 0 : -this.#tokens / this.#perMs;
  }
}
