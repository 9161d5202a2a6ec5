/**
 * The task manager of the operator. An attempt is known by its id and by the slot
 * that it occupies; when it ends it leaves both and its result is stored, in one
 * tick, so that an id is always found in exactly one of the two maps.
 */
import { type Clock, systemClock } from '../kube/clock.ts';
import { Attempt, type AttemptListener } from './attempt.ts';
import { CanceledError } from './errors.ts';
import { objectIdOf } from './object-id.ts';
import { ResultStore } from './result-store.ts';
import { Slots } from './slots.ts';
import { type TaskEvent, TaskEvents } from './task-events.ts';
import { taskFailureOf } from './task-failure.ts';
import type {
  TaskListener,
  TaskManager,
  TaskManagerOptions,
  TaskManagerObserver,
  TaskResult,
  TaskSpec,
  WorkingTask,
} from './task-manager.ts';
import { TaskPool } from './task-pool.ts';

const DEFAULT_POOL_SIZE = 500;

export function createTaskManager(options: TaskManagerOptions = {}): TaskManager {
  return new PooledTaskManager(options);
}

class PooledTaskManager implements TaskManager {
  readonly #clock: Clock;
  readonly #pool: TaskPool;
  readonly #observer: TaskManagerObserver;
  readonly #onError: TaskManagerOptions['onError'];
  readonly #working = new Map<string, Attempt>();
  readonly #slots = new Slots();
  /** What works, and what was purged but has not ended yet. */
  readonly #alive = new Set<Attempt>();
  readonly #results: ResultStore;
  readonly #events = new TaskEvents();
  readonly #waitingForTheLast = new Set<() => void>();
  #draining = false;

  readonly #attemptListener: AttemptListener = {
    started: (attempt) => this.#tell(attempt, () => this.#observer.started?.(attempt.view())),
    heartbeat: (attempt) => {
      if (this.#isKnown(attempt)) this.#emit('heartbeat', attempt);
    },
    detached: (attempt) => this.#tell(attempt, () => this.#observer.detached?.(attempt.view())),
    overruled: (attempt, error) => {
      if (this.#isKnown(attempt)) this.#report(error, attempt);
    },
    ended: (attempt, result) => this.#ended(attempt, result),
  };

  constructor({ clock = systemClock, poolSize, concurrency, observer, onError }: TaskManagerOptions) {
    this.#clock = clock;
    this.#pool = new TaskPool({ size: poolSize ?? DEFAULT_POOL_SIZE, concurrency });
    this.#observer = observer ?? {};
    this.#onError = onError;
    this.#results = new ResultStore(clock, (taskId) => callSafely(() => this.#observer.dropped?.(taskId)));
  }

  submit(spec: TaskSpec): void {
    this.#refuseImpossible(spec);
    const attempt = new Attempt(spec, this.#clock, this.#attemptListener);
    this.#working.set(spec.taskId, attempt);
    this.#slots.occupy(attempt);
    this.#alive.add(attempt);
    attempt.enter(this.#pool);
  }

  result(taskId: string): TaskResult | undefined {
    return this.#results.get(taskId);
  }

  isWorking(taskId: string): boolean {
    return this.#working.has(taskId);
  }

  working(taskId: string): WorkingTask | undefined {
    return this.#working.get(taskId)?.view();
  }

  workingOn(kind: string, key: string): string[] {
    return this.#slots.occupantsOf(objectIdOf({ kind, key })).map(({ spec }) => spec.taskId);
  }

  clean(taskId: string): void {
    this.#results.delete(taskId);
  }

  abort(taskId: string, reason: string): void {
    const attempt = this.#working.get(taskId);
    if (attempt && !attempt.spec.critical) attempt.cancel(reason);
  }

  purge(kind: string, key: string): void {
    const object = objectIdOf({ kind, key });
    const attempts = this.#slots.occupantsOf(object);
    for (const attempt of attempts) this.#forget(attempt);
    this.#results.deleteOf(object);
    for (const attempt of attempts) {
      const reason = `${kind} ${key} is gone`;
      attempt.cancel(reason);
      this.#observeSettled(attempt, this.#canceled(reason));
    }
  }

  retain(kind: string, key: string, taskIds: ReadonlySet<string>): void {
    this.#results.deleteOf(objectIdOf({ kind, key }), taskIds);
  }

  async drain(ms: number): Promise<string[]> {
    this.#draining = true;
    for (const attempt of this.#working.values()) {
      if (!attempt.spec.critical) attempt.cancel('The operator is shutting down');
    }
    await this.#untilNoneAlive(ms);
    this.#results.close();
    return [...this.#alive].map(({ spec }) => spec.taskId);
  }

  on(event: TaskEvent, listener: TaskListener): () => void {
    return this.#events.on(event, listener);
  }

  snapshot(): { readonly working: readonly WorkingTask[]; readonly results: readonly string[] } {
    return {
      working: [...this.#working.values()].map((attempt) => attempt.view()),
      results: this.#results.ids(),
    };
  }

  /** All of these are mistakes of the caller: none can be helped by waiting here. */
  #refuseImpossible(spec: TaskSpec): void {
    const { taskId, kind, key, branch } = spec;
    if (this.#draining)
      throw new Error(`Task ${nameOf(spec)} cannot start: the task manager takes no more tasks`);
    if (this.#working.has(taskId) || this.#results.has(taskId))
      throw new Error(`Task ${nameOf(spec)} cannot start: there is a task with this id already`);
    const occupant = this.#slots.occupantOf(spec);
    if (!occupant) return;
    const slot = branch ? `${kind} ${key}, branch ${branch},` : `${kind} ${key}`;
    throw new Error(
      `Task ${nameOf(spec)} cannot start: ${slot} is still worked on by task ${nameOf(occupant.spec)}`,
    );
  }

  /** A purged attempt is not known any more, though its function may go on for a while. */
  #isKnown(attempt: Attempt): boolean {
    return this.#working.get(attempt.spec.taskId) === attempt;
  }

  #forget(attempt: Attempt): void {
    this.#working.delete(attempt.spec.taskId);
    this.#slots.free(attempt);
  }

  #ended(attempt: Attempt, result: TaskResult): void {
    this.#alive.delete(attempt);
    if (this.#isKnown(attempt)) this.#settle(attempt, result);
    if (this.#alive.size > 0) return;
    for (const goOn of this.#waitingForTheLast) goOn();
  }

  #settle(attempt: Attempt, result: TaskResult): void {
    this.#forget(attempt);
    this.#results.add(attempt.spec.taskId, objectIdOf(attempt.spec), result);
    const canceled = result.status === 'failed' && result.error instanceof CanceledError;
    if (result.status === 'failed' && !canceled) this.#report(result.error, attempt);
    this.#observeSettled(attempt, result);
    this.#emit('settled', attempt);
  }

  /** Also of what is purged, so that every start that was observed has its end. */
  #observeSettled(attempt: Attempt, result: TaskResult): void {
    this.#tell(attempt, () => this.#observer.settled?.(attempt.view(), result, attempt.ranMs));
  }

  #canceled(reason: string): TaskResult {
    return { status: 'failed', error: new CanceledError(reason), finishedAt: this.#clock.now() };
  }

  #emit(event: TaskEvent, attempt: Attempt): void {
    this.#events.emit(event, attempt.spec, (thrown) => this.#report(taskFailureOf(thrown), attempt));
  }

  #tell(attempt: Attempt, observe: () => void): void {
    callSafely(observe, (thrown) => this.#report(taskFailureOf(thrown), attempt));
  }

  #report(error: Error, attempt: Attempt): void {
    callSafely(() => this.#onError?.(error, attempt.view()));
  }

  async #untilNoneAlive(ms: number): Promise<void> {
    if (this.#alive.size === 0) return;
    await new Promise<void>((resolve) => {
      const goOn = (): void => {
        stopTimer();
        this.#waitingForTheLast.delete(goOn);
        resolve();
      };
      const stopTimer = this.#clock.after(ms, goOn);
      this.#waitingForTheLast.add(goOn);
    });
  }
}

function nameOf({ taskId, flow, task }: TaskSpec): string {
  return `${taskId} (${flow} / ${task})`;
}

/** Whoever watches must not be able to break what is watched. */
function callSafely(call: () => void, onThrown: (thrown: unknown) => void = () => {}): void {
  try {
    call();
  } catch (thrown) {
    onThrown(thrown);
  }
}
