/**
 * Lets others have the event loop during long work. Reading a stream whose
 * bytes are there already never leaves the microtask queue, and ten thousand
 * objects in one go are a second without timers, probes and other sockets.
 */
import { setImmediate } from 'node:timers/promises';

const SLICE_MS = 10;

export class Pace {
  #sliceEnd = performance.now() + SLICE_MS;

  /** Undefined as long as there is time, so that the usual case costs no turn. */
  breathe(): Promise<void> | undefined {
    return performance.now() < this.#sliceEnd ? undefined : this.#pause();
  }

  async #pause(): Promise<void> {
    await setImmediate();
    this.#sliceEnd = performance.now() + SLICE_MS;
  }
}
