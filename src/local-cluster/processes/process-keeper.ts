/**
 * Child processes that never outlive us, not even after `kill -9`.
 *
 * Every child starts through a one-line shell that writes its pid to a
 * directory and then becomes the program (exec keeps the pid). A second
 * shell, the reaper, does nothing but read a pipe from us: when the pipe
 * closes we are gone, however we went, and it kills every process group in
 * that directory. To leave no gap, a child registers before it looks for the
 * mark `closed`, and the reaper sets the mark before it reads the directory:
 * one of the two sees the other.
 */
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, closeSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { ManagedProcess } from './managed-process.ts';

export interface ProcessSpec {
  /** How messages call it. */
  readonly name: string;
  readonly command: string;
  readonly args?: readonly string[];
  readonly cwd?: string;
  /** The whole environment of the child; ours where not given. */
  readonly env?: NodeJS.ProcessEnv;
  /** Standard output and error are appended here. */
  readonly logFile: string;
}

export interface PipedProcess {
  readonly process: ManagedProcess;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

export interface ProcessKeeperOptions {
  /** Where pids are kept while children run; made if absent. */
  readonly dir: string;
  /** Directories that are worth nothing without us: the reaper removes them when we die. */
  readonly removeIfOrphaned?: readonly string[];
}

const REGISTER_AND_BECOME = ': > "$0/$$" && [ ! -e "$0/closed" ] && exec "$@"';

const REAP = `
trap '' INT TERM HUP
while read -r _; do :; done
: > "$0/closed"
for file in "$0"/[0-9]*; do
  [ -e "$file" ] && kill -s KILL -- "-\${file##*/}" 2>/dev/null
done
orphaned=no
[ -e "$0/open" ] && orphaned=yes
rm -rf "$0"
[ "$orphaned" = yes ] && for dir in "$@"; do
  rm -rf "$dir" || { sleep 1; rm -rf "$dir"; }
done
exit 0
`;

export class ProcessKeeper implements AsyncDisposable {
  readonly #registry: string;
  readonly #reaper: ChildProcess;
  readonly #children = new Set<ManagedProcess>();

  constructor({ dir, removeIfOrphaned = [] }: ProcessKeeperOptions) {
    mkdirSync(dir, { recursive: true });
    this.#registry = mkdtempSync(join(dir, 'pids-'));
    closeSync(openSync(join(this.#registry, 'open'), 'w'));
    this.#reaper = spawn('/bin/sh', ['-c', REAP, this.#registry, ...removeIfOrphaned], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
    });
    // Neither the reaper nor its pipe may keep an otherwise finished process alive.
    this.#reaper.unref();
    (this.#reaper.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  }

  get running(): readonly ManagedProcess[] {
    return [...this.#children];
  }

  /** A child whose output goes to its log file. */
  spawn(spec: ProcessSpec): ManagedProcess {
    const log = openSync(spec.logFile, 'a');
    try {
      return this.#adopt(spec, this.#start(spec, ['ignore', log, log]));
    } finally {
      closeSync(log);
    }
  }

  /** A child whose output the caller reads; the log file is left to the caller. */
  spawnPiped(spec: ProcessSpec): PipedProcess {
    const child = this.#start(spec, ['ignore', 'pipe', 'pipe']);
    const { stdout, stderr } = child;
    if (!stdout || !stderr) throw new Error(`${spec.name}: no pipe to its output`);
    return { process: this.#adopt(spec, child), stdout, stderr };
  }

  /** Kills what still runs and dismisses the reaper. */
  async close(): Promise<void> {
    await Promise.all([...this.#children].map((child) => child.stop({ graceMs: 0 })));
    rmSync(join(this.#registry, 'open'), { force: true });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#reaper.once('exit', () => resolve());
    if (this.#reaper.exitCode !== null) resolve();
    this.#reaper.ref();
    this.#reaper.stdin?.end();
    await promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #start(spec: ProcessSpec, stdio: StdioOptions): ChildProcess {
    return spawn('/bin/sh', ['-c', REGISTER_AND_BECOME, this.#registry, spec.command, ...(spec.args ?? [])], {
      // A group of its own: a Ctrl-C in the terminal reaches us alone, and we stop children in order.
      detached: true,
      stdio,
      ...(spec.cwd !== undefined && { cwd: spec.cwd }),
      ...(spec.env !== undefined && { env: spec.env }),
    });
  }

  #adopt(spec: ProcessSpec, child: ChildProcess): ManagedProcess {
    const managed = new ManagedProcess(spec.name, child, spec.logFile);
    this.#children.add(managed);
    void managed.exited.then(() => {
      this.#children.delete(managed);
      if (managed.pid !== undefined) rmSync(join(this.#registry, String(managed.pid)), { force: true });
    });
    return managed;
  }
}
