/**
 * One attempt at a task, from the queue of its pool to its end. An abort is a
 * request: the function gets its signal and some time to heed it. One that does
 * not heed it is detached, which means that nobody waits for it any longer.
 */
import type { Clock } from '../kube/clock.ts';
import { Inactivity } from '../kube/inactivity.ts';
import { CanceledError, HeartbeatTimeoutError, TimeoutError } from './errors.ts';
import { taskFailureOf } from './task-failure.ts';
import type { TaskProgress, TaskResult, TaskRun, TaskSpec, WorkingTask } from './task-manager.ts';
import type { TaskPool } from './task-pool.ts';

const DEFAULT_SETTLE_MS = 30_000;

/** What the owner of attempts hears of them. */
export interface AttemptListener {
  started(attempt: Attempt): void;
  heartbeat(attempt: Attempt): void;
  /** Ignored its signal for too long; `ended` follows. */
  detached(attempt: Attempt): void;
  /** What the function threw after an abort, which counts less than the abort. */
  overruled(attempt: Attempt, error: Error): void;
  /** Once, and nothing follows it. */
  ended(attempt: Attempt, result: TaskResult): void;
}

export class Attempt {
  readonly spec: TaskSpec;
  readonly #clock: Clock;
  readonly #listener: AttemptListener;
  readonly #controller = new AbortController();
  readonly #submittedAt: number;
  #started: { readonly at: number; readonly monotonic: number } | undefined;
  #progress: WorkingTask['progress'];
  #abortedBy: Error | undefined;
  #ended = false;
  /** Steps out of the queue or, when it runs, gives its place to another. */
  #leavePool: () => void = () => {};
  #timeLimit: Inactivity | undefined;
  #silenceLimit: Inactivity | undefined;
  #settleLimit: Inactivity | undefined;

  constructor(spec: TaskSpec, clock: Clock, listener: AttemptListener) {
    this.spec = spec;
    this.#clock = clock;
    this.#listener = listener;
    this.#submittedAt = clock.now();
  }

  get branch(): string {
    return this.spec.branch ?? '';
  }

  /** How long its function has run. */
  get ranMs(): number {
    return this.#started ? this.#clock.monotonic() - this.#started.monotonic : 0;
  }

  enter(pool: TaskPool): void {
    const { poolClass = 'default', priority = 0 } = this.spec;
    this.#leavePool = pool.enter(poolClass, priority, (leave) => this.#begin(leave));
  }

  /** The end was asked for. */
  cancel(reason: string): void {
    this.#abort(new CanceledError(reason));
  }

  view(): WorkingTask {
    const { taskId, key, kind, flow, task } = this.spec;
    return {
      taskId,
      key,
      kind,
      flow,
      task,
      branch: this.branch,
      submittedAt: this.#submittedAt,
      startedAt: this.#started?.at,
      aborted: this.#abortedBy !== undefined,
      progress: this.#progress,
    };
  }

  #begin(leave: () => void): void {
    this.#leavePool = leave;
    this.#started = { at: this.#clock.now(), monotonic: this.#clock.monotonic() };
    this.#watchTime();
    this.#listener.started(this);
    void this.#run();
  }

  #watchTime(): void {
    const { task, timeoutMs, heartbeatMs } = this.spec;
    if (timeoutMs !== undefined)
      this.#timeLimit = new Inactivity(this.#clock, timeoutMs, () =>
        this.#abort(new TimeoutError(`${task} was not done after ${timeoutMs / 1000} s`)),
      );
    if (heartbeatMs !== undefined)
      this.#silenceLimit = new Inactivity(this.#clock, heartbeatMs, () =>
        this.#abort(new HeartbeatTimeoutError(`${task} gave no sign of life for ${heartbeatMs / 1000} s`)),
      );
  }

  async #run(): Promise<void> {
    const run: TaskRun = {
      signal: this.#controller.signal,
      heartbeat: (progress) => this.#heartbeat(progress),
    };
    this.#end(await this.#outcomeOf(run));
  }

  async #outcomeOf(run: TaskRun): Promise<TaskResult> {
    try {
      const value = await this.spec.fn(run);
      return { status: 'successful', value, finishedAt: this.#clock.now() };
    } catch (thrown) {
      const error = taskFailureOf(thrown);
      if (!this.#abortedBy) return this.#failure(error);
      const heeded = error === this.#abortedBy || error.name === 'AbortError';
      if (!heeded && !this.#ended) this.#listener.overruled(this, error);
      return this.#failure(this.#abortedBy);
    }
  }

  #heartbeat(progress: TaskProgress | undefined): void {
    if (this.#ended) return;
    this.#silenceLimit?.touch();
    // A bare sign of life does not wipe out what was told before.
    this.#progress = { ...(progress ?? this.#progress), heartbeatAt: this.#clock.now() };
    this.#listener.heartbeat(this);
  }

  /** The first reason counts. */
  #abort(error: Error): void {
    if (this.#ended || this.#abortedBy) return;
    this.#abortedBy = error;
    if (!this.#started) return this.#end(this.#failure(error));
    this.#stopWatching();
    const { detachable = true, settleMs = DEFAULT_SETTLE_MS } = this.spec;
    if (detachable)
      this.#settleLimit = new Inactivity(this.#clock, settleMs, () => {
        this.#listener.detached(this);
        this.#end(this.#failure(error));
      });
    this.#controller.abort(error);
  }

  #failure(error: Error): TaskResult {
    return { status: 'failed', error, finishedAt: this.#clock.now() };
  }

  #end(result: TaskResult): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopWatching();
    this.#leavePool();
    this.#listener.ended(this, result);
  }

  #stopWatching(): void {
    for (const limit of [this.#timeLimit, this.#silenceLimit, this.#settleLimit]) limit?.[Symbol.dispose]();
  }
}
