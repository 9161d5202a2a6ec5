/**
 * One signal out of a time limit and the caller's signal. Cheaper than
 * AbortSignal.any with AbortSignal.timeout, which every call would pay, and it
 * can tell which of the two it was. Dispose of it, or its timer stays.
 */
import type { Clock } from './clock.ts';

export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #cancel: (() => void) | undefined;
  readonly #onAbort = (): void => this.#controller.abort(this.#outer?.reason);
  readonly #endsAt: number;
  readonly #clock: Clock;
  #expired = false;

  /** `timeoutMs` 0 means no limit. */
  constructor(clock: Clock, timeoutMs: number, outer: AbortSignal | undefined) {
    this.#clock = clock;
    this.#outer = outer;
    this.#endsAt = timeoutMs > 0 ? clock.monotonic() + timeoutMs : Infinity;
    if (outer?.aborted) {
      this.#onAbort();
      return;
    }
    outer?.addEventListener('abort', this.#onAbort, { once: true });
    if (timeoutMs > 0)
      this.#cancel = clock.after(timeoutMs, () => {
        this.#expired = true;
        this.#controller.abort();
      });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether time ran out, and not the caller's patience. */
  get expired(): boolean {
    return this.#expired;
  }

  get remainingMs(): number {
    return this.#endsAt - this.#clock.monotonic();
  }

  [Symbol.dispose](): void {
    this.#cancel?.();
    this.#outer?.removeEventListener('abort', this.#onAbort);
  }
}
