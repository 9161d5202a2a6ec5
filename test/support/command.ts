/** Programs run as a user runs them: their output to read, their exit to await. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
export const TASKFLOW = join(ROOT, 'bin/taskflow.js');

export interface Finished {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

export class RunningCommand implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  #stdout = '';
  #stderr = '';

  constructor(
    command: string,
    args: readonly string[],
    { cwd = ROOT, env = process.env }: CommandOptions = {},
  ) {
    this.child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#stdout += text));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text));
    this.finished = once(this.child, 'close').then(([exitCode, signal]) => ({
      exitCode: exitCode as number | null,
      signal: signal as NodeJS.Signals | null,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  get stdout(): string {
    return this.#stdout;
  }

  /** The match of the first time that standard output contains the pattern; rejects if it ends without. */
  async untilPrinted(pattern: RegExp): Promise<RegExpExecArray> {
    const ended = this.finished.then((result) => {
      throw new Error(
        `ended with ${result.exitCode} before printing ${pattern}:\n${result.stdout}${result.stderr}`,
      );
    });
    ended.catch(() => {});
    for (;;) {
      const match = pattern.exec(this.#stdout);
      if (match) return match;
      await Promise.race([this.child.stdout && once(this.child.stdout, 'data'), ended]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL');
    await this.finished;
  }
}

export function runCommand(
  command: string,
  args: readonly string[],
  options?: CommandOptions,
): Promise<Finished> {
  return new RunningCommand(command, args, options).finished;
}

export function taskflow(args: readonly string[], options?: CommandOptions): Promise<Finished> {
  return runCommand(process.execPath, [TASKFLOW, ...args], options);
}
