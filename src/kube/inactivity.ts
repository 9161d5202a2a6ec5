/** Tells when nothing has happened for a while. A touch costs a number, not a timer. */
import type { Clock } from './clock.ts';

export class Inactivity implements Disposable {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onSilence: () => void;
  #touchedAt: number;
  #cancel: () => void;

  constructor(clock: Clock, limitMs: number, onSilence: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onSilence = onSilence;
    this.#touchedAt = clock.monotonic();
    this.#cancel = clock.after(limitMs, () => this.#look());
  }

  touch(): void {
    this.#touchedAt = this.#clock.monotonic();
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #look(): void {
    const left = this.#touchedAt + this.#limitMs - this.#clock.monotonic();
    // Timers may fire a fraction early.
    if (left <= 1) this.#onSilence();
    else this.#cancel = this.#clock.after(left, () => this.#look());
  }
}
