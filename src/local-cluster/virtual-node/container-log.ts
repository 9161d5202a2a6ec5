/**
 * The log of one run of a container: written as output arrives, read by any
 * number of readers meanwhile. Writing is synchronous, so that a reader who is
 * told of news finds it in the file, and lines of the two streams never mix.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import {
  LineSplitter,
  logLine,
  type LogStream,
  type LogView,
  nanoTimestamp,
  shownLine,
} from './log-format.ts';

const BLOCK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

export class ContainerLog {
  readonly path: string;
  readonly #descriptor: number;
  readonly #readers = new Set<() => void>();
  #open = true;
  #version = 0;

  constructor(path: string) {
    this.path = path;
    this.#descriptor = openSync(path, 'a', 0o600);
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** Grows with every write and with the close. */
  get version(): number {
    return this.#version;
  }

  write(stream: LogStream, lines: readonly { text: Buffer; part: boolean }[]): void {
    if (!this.#open || lines.length === 0) return;
    const timestamp = nanoTimestamp(performance.timeOrigin + performance.now());
    writeSync(
      this.#descriptor,
      Buffer.concat(lines.map(({ text, part }) => logLine(timestamp, stream, text, part))),
    );
    this.#tellReaders();
  }

  say(stream: LogStream, text: string): void {
    this.write(stream, [{ text: Buffer.from(text), part: false }]);
  }

  /** Resolves when the stream has ended and all of it is written. */
  async record(stream: LogStream, output: Readable): Promise<void> {
    const splitter = new LineSplitter();
    output.on('data', (chunk: Buffer) => this.write(stream, splitter.push(chunk)));
    await finished(output, { writable: false }).catch(() => {});
    this.write(stream, splitter.end());
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    closeSync(this.#descriptor);
    this.#tellReaders();
  }

  /** Resolves when there is more than at `version`, or when the signal aborts. */
  async newsAfter(version: number, signal: AbortSignal): Promise<void> {
    if (this.#version !== version || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const abort = (): void => resolve();
    this.#readers.add(resolve);
    signal.addEventListener('abort', abort, { once: true });
    await promise;
    this.#readers.delete(resolve);
    signal.removeEventListener('abort', abort);
  }

  #tellReaders(): void {
    this.#version++;
    for (const tell of this.#readers) tell();
  }
}

export interface LogQuery extends LogView {
  readonly tailLines?: number | undefined;
  readonly limitBytes?: number | undefined;
  /** The log to wait on for more, where the reader follows. */
  readonly follow?: ContainerLog | undefined;
}

/** What `kubectl logs` shows of the file, in blocks. */
export async function* readLog(path: string, query: LogQuery, signal: AbortSignal): AsyncGenerator<Buffer> {
  await using file = await open(path, 'r');
  let left = query.limitBytes ?? Infinity;
  for await (const line of storedLines(file, query, signal)) {
    const shown = shownLine(line, query);
    if (!shown) continue;
    yield shown.length > left ? shown.subarray(0, left) : shown;
    left -= shown.length;
    if (left <= 0) return;
  }
}

async function* storedLines(file: FileHandle, query: LogQuery, signal: AbortSignal): AsyncGenerator<Buffer> {
  let position = query.tailLines === undefined ? 0 : await startOfLastLines(file, query.tailLines);
  let rest = Buffer.alloc(0);
  while (!signal.aborted) {
    // Noted before the read: what is written after it is not missed.
    const { follow } = query;
    const version = follow?.version ?? 0;
    const { bytesRead, buffer } = await file.read(Buffer.alloc(BLOCK_BYTES), 0, BLOCK_BYTES, position);
    if (bytesRead === 0) {
      if (!follow || (!follow.isOpen && follow.version === version)) return;
      await follow.newsAfter(version, signal);
      continue;
    }
    position += bytesRead;
    let data = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
    for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE)) {
      yield data.subarray(0, end);
      data = data.subarray(end + 1);
    }
    rest = data;
  }
}

/** The offset from which on the file has `count` lines, found from its end. */
async function startOfLastLines(file: FileHandle, count: number): Promise<number> {
  const { size } = await file.stat();
  if (count <= 0) return size;
  let found = 0;
  for (let end = size; end > 0; end -= BLOCK_BYTES) {
    const start = Math.max(0, end - BLOCK_BYTES);
    const { buffer } = await file.read(Buffer.alloc(end - start), 0, end - start, start);
    for (let at = buffer.length - 1; at >= 0; at--)
      // The newline that ends the file ends its last line; it begins none.
      if (buffer[at] === NEWLINE && start + at !== size - 1 && ++found === count) return start + at + 1;
  }
  return 0;
}

/** The end of a log, for a termination message. */
export async function logTail(path: string, maxLines: number, maxBytes: number): Promise<string> {
  const lines: Buffer[] = [];
  const everything = { timestamps: false, tailLines: maxLines };
  for await (const line of readLog(path, everything, new AbortController().signal)) lines.push(line);
  return Buffer.concat(lines).subarray(-maxBytes).toString('utf8');
}

/** The runs of one container that have a log, oldest first. */
export async function loggedRuns(dir: string): Promise<number[]> {
  const names = await readdir(dir).catch(() => []);
  return names
    .flatMap((name) => (/^\d+\.log$/.test(name) ? [Number.parseInt(name, 10)] : []))
    .toSorted((one, other) => one - other);
}

export function logPath(dir: string, run: number): string {
  return join(dir, `${run}.log`);
}

/** `kubectl logs --previous` reaches back one run; what is older goes. */
export async function dropOldLogs(dir: string, run: number): Promise<void> {
  const old = (await loggedRuns(dir)).filter((logged) => logged < run - 1);
  await Promise.all(old.map((logged) => rm(logPath(dir, logged), { force: true })));
}
