/** A container whose image is no process: it only says that it runs, until it is told to end. */
import { endOf, type LiveContainer, type RunEnd } from './live-container.ts';

export class PretendedContainer implements LiveContainer {
  readonly exited: Promise<RunEnd>;
  readonly #settle: (end: RunEnd) => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<RunEnd>();
    this.exited = promise;
    this.#settle = resolve;
  }

  finish(exitCode: number): void {
    this.#settle(endOf(exitCode));
  }

  stop(): void {
    this.finish(0);
  }
}
