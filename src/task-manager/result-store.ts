/**
 * Results that wait to be collected. Whoever is to collect one may be gone, so
 * that a result is dropped after a day. One timer does for all of them, and there
 * is none while there are no results.
 */
import type { Clock } from '../kube/clock.ts';
import type { TaskResult } from './task-manager.ts';

export const RESULT_LIFETIME_MS = 24 * 60 * 60 * 1000;

interface Stored {
  readonly object: string;
  readonly result: TaskResult;
  readonly storedAt: number;
}

export class ResultStore {
  readonly #clock: Clock;
  readonly #onDropped: (taskId: string) => void;
  /** In the order of insertion, which is that of age, as an id is stored once. */
  readonly #stored = new Map<string, Stored>();
  readonly #idsByObject = new Map<string, Set<string>>();
  #stopTimer: (() => void) | undefined;
  #closed = false;

  constructor(clock: Clock, onDropped: (taskId: string) => void) {
    this.#clock = clock;
    this.#onDropped = onDropped;
  }

  add(taskId: string, object: string, result: TaskResult): void {
    this.#stored.set(taskId, { object, result, storedAt: this.#clock.monotonic() });
    const ids = this.#idsByObject.get(object);
    if (ids) ids.add(taskId);
    else this.#idsByObject.set(object, new Set([taskId]));
    if (!this.#stopTimer) this.#startTimer(RESULT_LIFETIME_MS);
  }

  get(taskId: string): TaskResult | undefined {
    return this.#stored.get(taskId)?.result;
  }

  has(taskId: string): boolean {
    return this.#stored.has(taskId);
  }

  ids(): string[] {
    return [...this.#stored.keys()];
  }

  delete(taskId: string): void {
    const stored = this.#stored.get(taskId);
    if (!stored) return;
    this.#stored.delete(taskId);
    const ids = this.#idsByObject.get(stored.object);
    ids?.delete(taskId);
    if (ids?.size === 0) this.#idsByObject.delete(stored.object);
    if (this.#stored.size === 0) this.#cancelTimer();
  }

  /** Deletes the results of the object, but for these. */
  deleteOf(object: string, except?: ReadonlySet<string>): void {
    for (const taskId of this.#idsByObject.get(object) ?? []) {
      if (!except?.has(taskId)) this.delete(taskId);
    }
  }

  /** Results stay, but none is dropped any more: a timer would keep the process from ending. */
  close(): void {
    this.#closed = true;
    this.#cancelTimer();
  }

  #startTimer(ms: number): void {
    if (this.#closed) return;
    this.#stopTimer = this.#clock.after(ms, () => {
      this.#stopTimer = undefined;
      this.#dropOld();
    });
  }

  #cancelTimer(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  #dropOld(): void {
    for (const [taskId, { storedAt }] of this.#stored) {
      const left = storedAt + RESULT_LIFETIME_MS - this.#clock.monotonic();
      // Timers may fire a fraction early.
      if (left > 1) return this.#startTimer(left);
      this.delete(taskId);
      this.#onDropped(taskId);
    }
  }
}
