/**
 * The containers of one Pod: their records and the runs behind them. A run's
 * end changes its record at once and then wakes the Pod's runner, which alone
 * decides what comes next; so no two runs of a container can overlap.
 */
import { mkdir } from 'node:fs/promises';
import { systemClock } from '../../kube/clock.ts';
import type { ProcessKeeper } from '../processes/process-keeper.ts';
import { ContainerLog, dropOldLogs, loggedRuns, logPath } from './container-log.ts';
import { launchProblem, ProcessContainer, type ProcessLaunch, startError } from './container-process.ts';
import { beginRun, type ContainerRecord, hasRun, newRecord, recoverRecords } from './container-record.ts';
import { endOf, type LiveContainer, type RunEnd } from './live-container.ts';
import type { PodSandbox } from './pod-sandbox.ts';
import { containersOf, isProcessImage, type PodContainer, specOf, type StoredPod } from './pod-spec.ts';
import { PretendedContainer } from './pretended-container.ts';
import { perform, startProbes } from './probes.ts';
import { noteEnd, type RestartBackoff, restartsAfter } from './restart-policy.ts';

export interface ContainersContext {
  readonly keeper: ProcessKeeper;
  readonly backoff: RestartBackoff;
  readonly startDelayMs: number;
}

export interface RunLog {
  readonly path: string;
  /** Set if more may come. */
  readonly live: ContainerLog | undefined;
}

interface Live {
  readonly part: PodContainer;
  readonly run: LiveContainer;
  readonly probes: AbortController;
}

const DEFAULT_GRACE_SECONDS = 30;
/** Sidecars share the Pod's grace with the containers before them, but get this much in any case. */
const SIDECAR_GRACE_MS = 1_000;

export class PodContainers {
  readonly records = new Map<string, ContainerRecord>();
  readonly #context: ContainersContext;
  readonly #sandbox: PodSandbox;
  readonly #pod: () => StoredPod;
  readonly #onChange: () => void;
  readonly #live = new Map<string, Live>();
  readonly #logs = new Map<string, ContainerLog>();
  /** False from the end of the Pod on: nothing starts any more, and what exits stays ended. */
  #starting = true;
  #endingSince: number | undefined;

  constructor(context: ContainersContext, sandbox: PodSandbox, pod: () => StoredPod, onChange: () => void) {
    this.#context = context;
    this.#sandbox = sandbox;
    this.#pod = pod;
    this.#onChange = onChange;
  }

  /** Fresh records; or those of an earlier life of the node, in which what was only pretended goes on. */
  async load(): Promise<void> {
    const pod = this.#pod();
    const parts = containersOf(specOf(pod));
    const runsBegun = new Map<string, number>();
    for (const { container } of parts) {
      const dir = this.#sandbox.logDir(container.name);
      await mkdir(dir, { recursive: true, mode: 0o700 });
      runsBegun.set(container.name, 1 + ((await loggedRuns(dir)).at(-1) ?? -1));
    }
    const isNew = !pod.status?.containerStatuses && [...runsBegun.values()].every((begun) => begun === 0);
    const records = isNew
      ? parts.map((part) => newRecord(part, specOf(pod), this.#firstStart(part)))
      : recoverRecords(pod, (name) => runsBegun.get(name) ?? 0, Date.now());
    for (const record of records) this.records.set(record.name, record);
  }

  /** Goes on with the containers that an earlier life of the node pretended to run. */
  resume(): void {
    for (const part of containersOf(specOf(this.#pod())))
      if (this.record(part.container.name).state.kind === 'running') this.#pretend(part);
  }

  get nothingRuns(): boolean {
    return this.#live.size === 0;
  }

  record(name: string): ContainerRecord {
    const record = this.records.get(name);
    if (!record) throw new Error(`the Pod has no container "${name}"`);
    return record;
  }

  /** The log of the present or latest run, or of the one that ended before; undefined if there was none. */
  log(name: string, previous: boolean): RunLog | undefined {
    const record = this.records.get(name);
    if (!record || !(previous ? record.last : hasRun(record))) return undefined;
    // A container that waits to run again has its latest run behind it.
    const run = previous && record.state.kind !== 'waiting' ? record.run - 1 : record.run;
    const path = logPath(this.#sandbox.logDir(name), run);
    const log = this.#logs.get(name);
    return { path, live: log?.path === path ? log : undefined };
  }

  async run(part: PodContainer, launch: ProcessLaunch): Promise<void> {
    const problem = await launchProblem(launch);
    if (!this.#starting) return;
    const log = await this.#begin(part);
    if (problem === undefined && this.#starting) return this.#spawn(part, launch, log);
    log.close();
    this.#noteEnd(part, problem === undefined ? endOf(137) : startError(problem));
  }

  async pretend(part: PodContainer): Promise<void> {
    const log = await this.#begin(part);
    log.say('stdout', `virtual node: only pretends to run the image ${part.container.image ?? ''}`);
    log.close();
    this.#pretend(part);
  }

  /** As if the program had started and failed at once. */
  async crash(part: PodContainer): Promise<void> {
    const log = await this.#begin(part);
    log.say('stderr', 'virtual node: the Pod asks by annotation to fail');
    log.close();
    this.#noteEnd(part, endOf(1));
  }

  /** Fails what runs; restart policies apply. */
  crashRunning(): void {
    for (const { run } of this.#live.values())
      if (run instanceof PretendedContainer) run.finish(1);
      else run.stop(0);
  }

  /** Ends main containers that are pretended to run since that long. Returns when the next one is due. */
  finishPretended(afterMs: number, exitCode: number): number | undefined {
    let next: number | undefined;
    for (const [name, { part, run }] of this.#live) {
      const { state } = this.record(name);
      if (part.role !== 'main' || !(run instanceof PretendedContainer) || state.kind !== 'running') continue;
      const due = state.startedAt + afterMs;
      if (due <= Date.now()) run.finish(exitCode);
      else next = Math.min(next ?? Infinity, due);
    }
    return next;
  }

  /** Nothing starts from now on. Sidecars end after the others, the last one first: call again when one has ended. */
  end(graceMs: number): void {
    this.#starting = false;
    const workers = [...this.#live.values()].filter(({ part }) => part.role !== 'sidecar');
    for (const { run } of workers) run.stop(graceMs);
    this.#endingSince ??= Date.now();
    if (workers.length > 0) return;
    const [last] = [...this.records.keys()].toReversed().flatMap((name) => this.#live.get(name) ?? []);
    const leftMs = graceMs - (Date.now() - this.#endingSince);
    last?.run.stop(graceMs === 0 ? 0 : Math.max(SIDECAR_GRACE_MS, leftMs));
  }

  /** The same at once, for all. */
  async endAll(graceMs: number): Promise<void> {
    this.#starting = false;
    const runs = [...this.#live.values()].map(({ run }) => run);
    for (const run of runs) run.stop(graceMs);
    await Promise.all(runs.map(({ exited }) => exited));
  }

  #firstStart({ container }: PodContainer): number {
    return Date.now() + (isProcessImage(container.image) ? 0 : this.#context.startDelayMs);
  }

  /** The log file is made before the process: it is the trace of a start that no status tells of yet. */
  async #begin({ container }: PodContainer): Promise<ContainerLog> {
    const record = this.record(container.name);
    beginRun(record, Date.now());
    const dir = this.#sandbox.logDir(container.name);
    const log = new ContainerLog(logPath(dir, record.run));
    this.#logs.set(container.name, log);
    await dropOldLogs(dir, record.run);
    return log;
  }

  #spawn(part: PodContainer, launch: ProcessLaunch, log: ContainerLog): void {
    const { container } = part;
    const record = this.record(container.name);
    const run = new ProcessContainer(this.#context.keeper, launch, log, this.#preStop(part));
    const { probes } = this.#adopt(part, run);
    const change = (changed: Partial<Pick<ContainerRecord, 'started' | 'ready'>>): void => {
      Object.assign(record, changed);
      this.#onChange();
    };
    const target = { podIP: this.#sandbox.podIP, exec: run.exec.bind(run) };
    startProbes(
      container,
      target,
      {
        onStarted: () => change({ started: true }),
        onReady: (ready) => change({ ready }),
        onFailed: (probe) => run.stop(this.#graceMs(probe.terminationGracePeriodSeconds)),
      },
      probes.signal,
    );
  }

  #preStop({ container }: PodContainer): ConstructorParameters<typeof ProcessContainer>[3] {
    const hook = container.lifecycle?.preStop;
    if (!hook) return undefined;
    const { sleep } = hook;
    return async (run, timeoutMs) => {
      if (sleep) await systemClock.sleep(1000 * sleep.seconds);
      else
        await perform(hook, container, { podIP: this.#sandbox.podIP, exec: run.exec.bind(run) }, timeoutMs);
    };
  }

  #pretend(part: PodContainer): void {
    const record = this.record(part.container.name);
    const run = new PretendedContainer();
    this.#adopt(part, run);
    record.started = true;
    record.ready = true;
    // An init container that stayed would hold its Pod for ever.
    if (part.role === 'init') run.finish(0);
  }

  #adopt(part: PodContainer, run: LiveContainer): Live {
    const live = { part, run, probes: new AbortController() };
    this.#live.set(part.container.name, live);
    void run.exited.then((end) => {
      live.probes.abort();
      this.#live.delete(part.container.name);
      this.#noteEnd(part, end);
      this.#onChange();
    });
    return live;
  }

  #noteEnd(part: PodContainer, end: RunEnd): void {
    const pod = this.#pod();
    const record = this.record(part.container.name);
    const now = Date.now();
    const startedAt = record.state.kind === 'running' ? record.state.startedAt : now;
    const restarts = this.#starting && restartsAfter(part, specOf(pod), end.exitCode);
    const subject = `${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})`;
    const terminated = { kind: 'terminated', ...end, startedAt, finishedAt: now } as const;
    noteEnd(record, terminated, restarts, this.#context.backoff, subject);
  }

  #graceMs(ofProbe: number | undefined): number {
    return 1000 * (ofProbe ?? this.#pod().spec?.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS);
  }
}
