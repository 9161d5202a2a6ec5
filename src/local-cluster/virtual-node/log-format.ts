/** Lines of container logs as container runtimes write them and the kubelet reads them (the CRI format). Pure. */

export type LogStream = 'stdout' | 'stderr';

/** Longer lines are cut into parts, as container runtimes do. */
export const MAX_LINE_BYTES = 16 * 1024;
const NEWLINE = 0x0a;

/** `2026-01-02T03:04:05.678901000Z stdout F text`: F ends a line, P is a part of one. */
export function logLine(timestamp: string, stream: LogStream, text: Buffer, part: boolean): Buffer {
  return Buffer.concat([Buffer.from(`${timestamp} ${stream} ${part ? 'P' : 'F'} `), text, Buffer.from('\n')]);
}

/** Fixed width, so that times sort as text. */
export function nanoTimestamp(ms: number): string {
  const whole = Math.floor(ms);
  const nanos = Math.floor((ms - whole) * 1e6);
  return new Date(whole).toISOString().replace('Z', `${String(nanos).padStart(6, '0')}Z`);
}

/** Cuts a stream of chunks into lines; what has no newline yet waits for the next chunk or the end. */
export class LineSplitter {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): { text: Buffer; part: boolean }[] {
    const lines: { text: Buffer; part: boolean }[] = [];
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const newline = data.indexOf(NEWLINE);
      if (newline >= 0 && newline <= MAX_LINE_BYTES) {
        lines.push({ text: data.subarray(0, newline), part: false });
        data = data.subarray(newline + 1);
      } else if (data.length > MAX_LINE_BYTES) {
        lines.push({ text: data.subarray(0, MAX_LINE_BYTES), part: true });
        data = data.subarray(MAX_LINE_BYTES);
      } else break;
    }
    this.#rest = data;
    return lines;
  }

  end(): { text: Buffer; part: boolean }[] {
    const text = this.#rest;
    this.#rest = Buffer.alloc(0);
    return text.length === 0 ? [] : [{ text, part: false }];
  }
}

export interface LogView {
  readonly timestamps: boolean;
  /** Epoch milliseconds; earlier lines are left out. */
  readonly since?: number | undefined;
}

/** What a reader sees of one stored line, without its line end; undefined if nothing. */
export function shownLine(line: Buffer, { timestamps, since }: LogView): Buffer | undefined {
  const afterTime = line.indexOf(' ');
  const afterStream = line.indexOf(' ', afterTime + 1);
  const afterTag = line.indexOf(' ', afterStream + 1);
  if (afterTime < 0 || afterStream < 0 || afterTag < 0) return undefined;
  const time = line.subarray(0, afterTime).toString('latin1');
  if (since !== undefined && Date.parse(time) < since) return undefined;
  const text = line.subarray(afterTag + 1);
  const part = line.subarray(afterStream + 1, afterTag).toString('latin1') === 'P';
  return Buffer.concat([
    ...(timestamps ? [Buffer.from(`${time} `)] : []),
    text,
    ...(part ? [] : [Buffer.from('\n')]),
  ]);
}
