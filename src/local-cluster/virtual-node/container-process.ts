/**
 * One run of a container as a local process. Its output goes to the log; it
 * has ended when both pipes are drained, so that the last words of a program
 * are in the log before its exit code is in the status.
 */
import { constants as fsConstants } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { type Exit, type ManagedProcess } from '../processes/managed-process.ts';
import type { ProcessKeeper } from '../processes/process-keeper.ts';
import { type ContainerLog, logTail } from './container-log.ts';
import type { Environment } from './environment.ts';
import { endOf, type LiveContainer, type RunEnd } from './live-container.ts';

export interface ProcessLaunch {
  /** How messages call it. */
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
  readonly env: Environment;
  readonly cwd: string;
  /** Where the process may leave a last message. */
  readonly terminationLog: string;
  /** Without such a message, the end of the log is one if the run failed. */
  readonly logIsMessageOnError: boolean;
}

/** A program that escaped its process group may hold the pipes for ever. */
const DRAIN_MS = 500;
/** The kubelet's bounds of a termination message. */
const MESSAGE_BYTES = 4096;
const MESSAGE_LOG = { lines: 80, bytes: 2048 };

export class ProcessContainer implements LiveContainer {
  readonly exited: Promise<RunEnd>;
  readonly #keeper: ProcessKeeper;
  readonly #launch: ProcessLaunch;
  readonly #log: ContainerLog;
  readonly #process: ManagedProcess;
  readonly #preStop: ((timeoutMs: number) => Promise<void>) | undefined;
  #kill: { readonly at: number; readonly timer: NodeJS.Timeout } | undefined;

  constructor(
    keeper: ProcessKeeper,
    launch: ProcessLaunch,
    log: ContainerLog,
    preStop?: (container: ProcessContainer, timeoutMs: number) => Promise<void>,
  ) {
    this.#keeper = keeper;
    this.#launch = launch;
    this.#log = log;
    this.#preStop = preStop && ((timeoutMs) => preStop(this, timeoutMs));
    const [command, ...args] = launch.argv;
    const { name, cwd, env } = launch;
    const child = keeper.spawnPiped({ name, command, args, cwd, env, logFile: log.path });
    const { stdout, stderr } = child;
    this.#process = child.process;
    const recorded = Promise.all([log.record('stdout', stdout), log.record('stderr', stderr)]);
    this.exited = child.process.exited.then(async (exit) => {
      clearTimeout(this.#kill?.timer);
      const release = setTimeout(() => [stdout, stderr].forEach((pipe) => pipe.destroy()), DRAIN_MS);
      await recorded;
      clearTimeout(release);
      log.close();
      return this.#end(exit);
    });
  }

  stop(graceMs: number): void {
    if (graceMs <= 0) return this.#process.signal('SIGKILL');
    const first = this.#kill === undefined;
    const at = Date.now() + graceMs;
    if (this.#kill && this.#kill.at <= at) return;
    clearTimeout(this.#kill?.timer);
    this.#kill = { at, timer: setTimeout(() => this.#process.signal('SIGKILL'), graceMs) };
    if (!first) return;
    const terminate = (): void => this.#terminate();
    if (this.#preStop) this.#preStop(graceMs).then(terminate, terminate);
    else terminate();
  }

  /** To the main process alone, as in a container: what it does about its children is its own affair. */
  #terminate(): void {
    const { exit, pid } = this.#process;
    if (exit || pid === undefined) return;
    try {
      process.kill(pid, 'SIGTERM');
    } catch {
      // It ended by itself in this moment.
    }
  }

  /** Runs a command where the container runs: same environment, same directory. True if it exits with 0. */
  async exec(argv: readonly string[], timeoutMs: number): Promise<boolean> {
    const [command, ...args] = argv;
    if (command === undefined || this.#process.exit) return false;
    const { name, cwd, env } = this.#launch;
    const child = this.#keeper.spawnPiped({
      name: `${name}: ${command}`,
      command,
      args,
      cwd,
      env,
      logFile: this.#log.path,
    });
    child.stdout.resume();
    child.stderr.resume();
    const kill = (): void => child.process.signal('SIGKILL');
    const timer = setTimeout(kill, timeoutMs);
    void this.#process.exited.then(kill);
    const exit = await child.process.exited;
    clearTimeout(timer);
    return exit.kind === 'code' && exit.code === 0;
  }

  async #end(exit: Exit): Promise<RunEnd> {
    if (exit.kind === 'not-started') return startError(exit.error.message);
    const exitCode = exit.kind === 'code' ? exit.code : 128 + constants.signals[exit.signal];
    return endOf(exitCode, await this.#message(exitCode).catch(() => undefined));
  }

  async #message(exitCode: number): Promise<string | undefined> {
    const { terminationLog, logIsMessageOnError } = this.#launch;
    const left = await readFile(terminationLog).catch(() => Buffer.alloc(0));
    if (left.length > 0) return left.subarray(0, MESSAGE_BYTES).toString('utf8');
    if (!logIsMessageOnError || exitCode === 0) return undefined;
    const tail = await logTail(this.#log.path, MESSAGE_LOG.lines, MESSAGE_LOG.bytes);
    return tail === '' ? undefined : tail;
  }
}

/** As container runtimes report a program that cannot be started. */
export function startError(message: string): RunEnd {
  return { exitCode: 128, reason: 'StartError', message };
}

/** Why the program of a launch cannot be started; undefined if it can. */
export async function launchProblem({ argv, env, cwd }: ProcessLaunch): Promise<string | undefined> {
  const [command] = argv;
  if (!(await isDirectory(cwd))) return `working directory "${cwd}" does not exist`;
  if (command.includes('/')) {
    const path = resolve(cwd, command);
    return (await isExecutable(path)) ? undefined : `exec: "${command}": no such executable file`;
  }
  for (const dir of (env['PATH'] ?? '').split(delimiter))
    if (await isExecutable(join(dir, command))) return undefined;
  return `exec: "${command}": executable file not found in $PATH`;
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, fsConstants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
