/**
 * One run of the go command with its output line by line.
 *
 * go starts compilers and linkers of its own, so it gets a process group and
 * the group is ended as one: with SIGINT first, on which go removes its
 * temporary files, then with SIGKILL. If this process dies without a word,
 * the pipe of the output breaks, and go ends at the next line it prints.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { SourceFailedError } from './source.ts';

export interface GoRun {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly onStdout?: (line: string) => void;
  readonly onStderr?: (line: string) => void;
}

type End = { readonly error: Error } | { readonly code: number | null; readonly signal: string | null };

const KILL_AFTER_MS = 3_000;
const TAIL_LINES = 8;

/** Rejects with SourceFailedError and the last lines of the output, or with the reason of the abort. */
export async function runGo(run: GoRun): Promise<void> {
  run.signal.throwIfAborted();
  const child = spawn('go', run.args, {
    cwd: run.cwd,
    env: run.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const tail: string[] = [];
  eachLine(child.stdout, (line) => run.onStdout?.(line));
  eachLine(child.stderr, (line) => {
    run.onStderr?.(line);
    if (isPackageName(line)) return;
    tail.push(line);
    if (tail.length > TAIL_LINES) tail.shift();
  });
  const end = await endOf(child, run.signal);
  run.signal.throwIfAborted();
  if ('error' in end) throw notStarted(end.error);
  if (end.code === 0) return;
  const how = end.signal === null ? `exit code ${end.code}` : `ended by ${end.signal}`;
  throw new SourceFailedError(`go ${run.args[0]} failed (${how}): ${tail.join(' / ') || 'no output'}`);
}

/** `go build -v` prints the bare name of each package, among real messages. */
export function isPackageName(line: string): boolean {
  return /^[\w.~/-]+$/.test(line);
}

async function endOf(child: ChildProcess, signal: AbortSignal): Promise<End> {
  let killTimer: NodeJS.Timeout | undefined;
  const interrupt = (): void => {
    signalGroup(child, 'SIGINT');
    killTimer = setTimeout(() => signalGroup(child, 'SIGKILL'), KILL_AFTER_MS);
  };
  const killGroup = (): void => signalGroup(child, 'SIGKILL');
  signal.addEventListener('abort', interrupt, { once: true });
  process.once('exit', killGroup);
  try {
    return await new Promise<End>((resolve) => {
      child.once('error', (error) => resolve({ error }));
      // An interrupted go does not wait for its compilers.
      child.once('exit', killGroup);
      // `close`, not `exit`: it also waits for compilers that still hold the pipes.
      child.once('close', (code, signalName) => resolve({ code, signal: signalName }));
    });
  } finally {
    clearTimeout(killTimer);
    signal.removeEventListener('abort', interrupt);
    process.removeListener('exit', killGroup);
  }
}

function signalGroup(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch {
    // The whole group is gone already.
  }
}

function notStarted(error: Error): SourceFailedError {
  const absent = 'code' in error && error.code === 'ENOENT';
  return new SourceFailedError(
    absent
      ? 'there is no go command on the PATH; Go 1.26 or later from https://go.dev/dl/ would do'
      : `the go command does not start: ${error.message}`,
    { cause: error },
  );
}

function eachLine(stream: Readable, onLine: (line: string) => void): void {
  createInterface({ input: stream, crlfDelay: Infinity }).on('line', onLine);
}
