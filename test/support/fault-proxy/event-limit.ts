/**
 * Lets a number of watch events through and then ends. Events are counted by
 * their line end, bookmarks included, so that it is meant for JSON watches;
 * clients that ask for protobuf use another framing.
 */
import { Transform, type TransformCallback } from 'node:stream';

const LINE_END = 0x0a;

export class EventLimit extends Transform {
  #left: number;

  constructor(limit: number) {
    super();
    this.#left = limit;
    if (this.reached) this.push(null);
  }

  get reached(): boolean {
    return this.#left <= 0;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    // What still comes after the last event has nowhere to go.
    if (this.reached) return done();
    this.push(chunk.subarray(0, this.#lengthWithinLimit(chunk)));
    if (this.reached) this.push(null);
    done();
  }

  #lengthWithinLimit(chunk: Buffer): number {
    for (let end = chunk.indexOf(LINE_END); end !== -1; end = chunk.indexOf(LINE_END, end + 1)) {
      this.#left--;
      if (this.reached) return end + 1;
    }
    return chunk.length;
  }
}
