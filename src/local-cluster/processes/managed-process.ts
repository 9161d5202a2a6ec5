/** One child process: how it ended, how to end it, and what it said last. */
import type { ChildProcess } from 'node:child_process';
import { open } from 'node:fs/promises';

export type Exit =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'not-started'; readonly error: Error };

export interface StopOptions {
  readonly signal?: NodeJS.Signals;
  /** How long it may take over the signal before it is killed. */
  readonly graceMs: number;
}

const TAIL_BYTES = 16 * 1024;

export class ManagedProcess {
  readonly name: string;
  readonly pid: number | undefined;
  readonly logFile: string;
  readonly exited: Promise<Exit>;
  #exit: Exit | undefined;

  constructor(name: string, child: ChildProcess, logFile: string) {
    this.name = name;
    this.pid = child.pid;
    this.logFile = logFile;
    this.exited = new Promise((resolve) => {
      const settle = (exit: Exit): void => {
        this.#exit ??= exit;
        resolve(this.#exit);
      };
      child.once('error', (error) => settle({ kind: 'not-started', error }));
      child.once('exit', (code, signal) => {
        // What the program left running in its group ends with it, as in a container.
        this.signal('SIGKILL');
        settle(signal ? { kind: 'signal', signal } : { kind: 'code', code: code ?? 0 });
      });
    });
  }

  /** How it ended; undefined while it runs. */
  get exit(): Exit | undefined {
    return this.#exit;
  }

  /** To the whole process group, since a program's own children must go with it. */
  signal(signal: NodeJS.Signals): void {
    if (this.#exit || this.pid === undefined) return;
    try {
      process.kill(-this.pid, signal);
    } catch {
      // Nothing is left of the group.
    }
  }

  async stop({ signal = 'SIGTERM', graceMs }: StopOptions): Promise<Exit> {
    if (graceMs > 0) {
      this.signal(signal);
      const timer = setTimeout(() => this.signal('SIGKILL'), graceMs);
      try {
        return await this.exited;
      } finally {
        clearTimeout(timer);
      }
    }
    this.signal('SIGKILL');
    return this.exited;
  }

  /** Empty where the log was never written or is gone already. */
  async logTail(maxLines = 20): Promise<string> {
    return tailOf(this.logFile, maxLines).catch(() => '');
  }
}

export function describeExit(exit: Exit): string {
  switch (exit.kind) {
    case 'code':
      return `exit code ${exit.code}`;
    case 'signal':
      return `signal ${exit.signal}`;
    case 'not-started':
      return exit.error.message;
  }
}

async function tailOf(path: string, maxLines: number): Promise<string> {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  const length = Math.min(size, TAIL_BYTES);
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.toString('utf8').trimEnd().split('\n').slice(-maxLines).join('\n');
}
