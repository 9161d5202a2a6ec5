/**
 * The attempts of one kind that run in this process: starts them with the
 * context that their author sees, and tells what is known of each.
 */
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { apiVersionOf, type KubeObject, objectKey, type Stored } from '../kube/resource-type.ts';
import type { Config } from '../runtime/config/schema.ts';
import type { Logger } from '../runtime/logging.ts';
import { tracer, withSpan } from '../runtime/tracing.ts';
import { CanceledError, TimeoutError } from '../task-manager/errors.ts';
import { PRIORITY, type TaskManager, type TaskRun, type WorkingTask } from '../task-manager/task-manager.ts';
import { outcomeOf } from './error-report.ts';
import type { FlowKind } from './flow-kind.ts';
import { kindName } from './flow-kind.ts';
import type { OperationContext } from './operation-context.ts';
import { checkpointOf } from './advance.ts';
import { liveIds } from './commands.ts';
import type { ResolvedTask } from './plan.ts';
import type { TaskContext, TaskOutcome } from './task-definition.ts';
import { type AttemptView, iso, type Owner, type StartEffect } from './world.ts';

export interface AttemptsOptions<O extends KubeObject> {
  readonly kind: FlowKind<O>;
  readonly tasks: TaskManager;
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly config: Config;
  readonly clock: Clock;
  readonly owner: () => Owner;
  readonly isLeader: () => boolean;
}

export interface AttemptStart<O extends KubeObject> {
  readonly effect: StartEffect;
  readonly object: Stored<O>;
  readonly context: OperationContext;
  readonly resolved: ResolvedTask<O>;
}

/** What an attempt wants stored, and who waits for that. */
interface Unstored {
  entries: Record<string, string>;
  readonly waiters: { resolve: () => void; reject: (error: Error) => void }[];
}

type Progress = NonNullable<WorkingTask['progress']>;

const MOST_CHECKPOINT_KEYS = 16;
const MOST_CHECKPOINT_BYTES = 4 * 1024;
const WAITING_SINCE = 'waiting-since';

export class Attempts<O extends KubeObject> {
  readonly #options: AttemptsOptions<O>;
  readonly #kind: string;
  readonly #unstored = new Map<string, Unstored>();
  /** Of these, what is in a status that is being stored. */
  readonly #storing = new Map<string, Unstored>();
  /** The progress that is stored, and since when. */
  readonly #shown = new Map<string, { readonly at: number; readonly progress: Progress }>();
  /** The progress in a status that is being stored. */
  readonly #showing = new Map<string, Progress>();
  /** Called when a key has to be looked at because of a checkpoint or a heartbeat. */
  #wake: (key: string) => void = () => {};

  constructor(options: AttemptsOptions<O>) {
    this.#options = options;
    this.#kind = kindName(options.kind);
  }

  /** Tells the keys of objects to look at again; returns how to stop that. */
  subscribe(wake: (key: string) => void): () => void {
    const { tasks } = this.#options;
    const mine = (kind: string, key: string): void => {
      if (kind === this.#kind) wake(key);
    };
    this.#wake = wake;
    const stops = [
      tasks.on('settled', (kind, key, taskId) => {
        this.#forget(taskId, new CanceledError('the task has ended'));
        mine(kind, key);
      }),
      tasks.on('heartbeat', (kind, key, taskId) => {
        if (kind === this.#kind) this.#heard(key, taskId);
      }),
    ];
    return () => stops.forEach((stop) => stop());
  }

  view(taskId: string): AttemptView {
    const { tasks } = this.#options;
    const result = tasks.result(taskId);
    if (result) return { state: 'settled', outcome: outcomeOf(result) };
    const working = tasks.working(taskId);
    if (!working) return { state: 'unknown' };
    const unstored = this.#unstored.get(taskId);
    if (unstored) this.#storing.set(taskId, unstored);
    const progress = this.#progressToShow(working);
    if (progress) this.#showing.set(taskId, progress);
    return {
      state: 'working',
      ...(progress && { progress: { ...progress, heartbeatAt: iso(progress.heartbeatAt) } }),
      ...(unstored && { checkpoint: unstored.entries }),
    };
  }

  /** The status that a pass made of the views is stored. */
  stored(taskIds: readonly string[]): void {
    for (const taskId of taskIds) {
      this.#storedCheckpoint(taskId);
      const progress = this.#showing.get(taskId);
      if (progress) this.#shown.set(taskId, { at: this.#options.clock.now(), progress });
      this.#showing.delete(taskId);
    }
  }

  /** What came after the pass had its view is not stored yet. */
  #storedCheckpoint(taskId: string): void {
    const stored = this.#storing.get(taskId);
    const latest = this.#unstored.get(taskId);
    if (!stored || !latest) return;
    for (const { resolve } of stored.waiters) resolve();
    this.#storing.delete(taskId);
    if (latest === stored) this.#unstored.delete(taskId);
    else
      this.#unstored.set(taskId, {
        entries: latest.entries,
        waiters: latest.waiters.filter((waiter) => !stored.waiters.includes(waiter)),
      });
  }

  abort(taskId: string, reason: string): void {
    this.#options.tasks.abort(taskId, reason);
  }

  /** Forgets results that the stored context no longer names. */
  retain(key: string, taskIds: ReadonlySet<string>): void {
    this.#options.tasks.retain(this.#kind, key, taskIds);
  }

  purge(key: string): void {
    this.#options.tasks.purge(this.#kind, key);
  }

  /** False while an attempt that the flow no longer names still works there: it is told to end. */
  start(start: AttemptStart<O>): boolean {
    const { effect, object, context, resolved } = start;
    const { task } = resolved;
    if (this.#endStrays(objectKey(object.metadata), context)) return false;
    const deleting = object.metadata.deletionTimestamp !== undefined;
    // A task that waits runs again under the id that is stored for it.
    this.#options.tasks.clean(effect.taskId);
    this.#options.tasks.submit({
      taskId: effect.taskId,
      key: objectKey(object.metadata),
      kind: this.#kind,
      flow: context.name,
      task: effect.task,
      branch: effect.branch,
      timeoutMs: effect.timeoutMs,
      priority: deleting ? PRIORITY.deletion : PRIORITY.other,
      ...(task.heartbeatMs !== undefined && { heartbeatMs: task.heartbeatMs }),
      ...(task.poolClass !== undefined && { poolClass: task.poolClass }),
      ...(task.critical !== undefined && { critical: task.critical }),
      ...(task.detachable !== undefined && { detachable: task.detachable }),
      ...(task.cancelSettleMs !== undefined && { settleMs: task.cancelSettleMs }),
      fn: (run) => this.#run(start, run),
    });
    return true;
  }

  /** A rescue from outside has moved the flow on while one of its tasks was running. */
  #endStrays(key: string, context: OperationContext): boolean {
    const { tasks } = this.#options;
    const named = new Set(liveIds(context));
    const strays = tasks.workingOn(this.#kind, key).filter((id) => !named.has(id));
    for (const id of strays) tasks.abort(id, 'the flow has moved on without it');
    return strays.length > 0;
  }

  #run({ effect, object, context, resolved }: AttemptStart<O>, run: TaskRun): Promise<unknown> {
    const { task } = resolved;
    const ctx = this.#contextOf({ effect, object, context, resolved }, run);
    const fn = effect.reattach && task.reattach ? task.reattach : task.run;
    const attributes = {
      'taskflow.kind': this.#kind,
      'taskflow.object': ctx.key,
      'taskflow.flow': context.name,
      'taskflow.task': effect.task,
      'taskflow.attempt': effect.attempt,
    };
    ctx.log.debug(effect.reattach ? 'task is found again' : 'task starts');
    return withSpan(tracer(), 'task', attributes, async () => {
      // A process that was frozen hears late that its claim is stored: another may have taken the task up since.
      await ctx.guard();
      return fn(ctx);
    });
  }

  #contextOf({ effect, object, context, resolved }: AttemptStart<O>, run: TaskRun): TaskContext<O> {
    const { client, events, config, clock, owner, isLeader, kind } = this.#options;
    const { taskId, task, attempt, branch } = effect;
    const { namespace, name } = object.metadata;
    const saved = checkpointOf(context, task, branch);
    const log = this.#options.log.child({
      ...(namespace !== undefined && { namespace }),
      name,
      flow: context.name,
      task,
      taskId,
      attempt,
    });
    const about = { ...object, apiVersion: apiVersionOf(kind.schema), kind: kind.schema.kind };
    const wait: TaskContext<O>['wait'] = (ms, reason) => ({ wait: { ms, reason } });
    return {
      object,
      key: objectKey(object.metadata),
      flow: context.name,
      flowId: context.flowId ?? '',
      task,
      taskId,
      attempt,
      item: resolved.item,
      saved,
      signal: run.signal,
      client,
      log,
      config,
      clock,
      fence: owner(),
      async guard() {
        run.signal.throwIfAborted();
        if (!isLeader()) throw new CanceledError('this process no longer leads');
      },
      event: (type, reason, message) => events.event(about, type, reason, message),
      heartbeat: (progress) => run.heartbeat(progress),
      checkpoint: (entries) =>
        this.#checkpoint(taskId, objectKey(object.metadata), saved, entries, run.signal),
      wait,
      waitUntil: (probe, options) => waitUntil(probe, { ...options, saved, attempt, now: clock.now() }),
      refresh: () =>
        client.get(
          kind.schema,
          { name, ...(namespace !== undefined && { namespace }) },
          { signal: run.signal },
        ),
    };
  }

  #checkpoint(
    taskId: string,
    key: string,
    saved: Record<string, string>,
    entries: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    const unstored = this.#unstored.get(taskId) ?? { entries: {}, waiters: [] };
    const all = { ...saved, ...unstored.entries, ...entries };
    const bytes = Buffer.byteLength(JSON.stringify(all));
    if (Object.keys(all).length > MOST_CHECKPOINT_KEYS || bytes > MOST_CHECKPOINT_BYTES)
      throw new Error(
        `a checkpoint has at most ${MOST_CHECKPOINT_KEYS} keys and ${MOST_CHECKPOINT_BYTES} bytes`,
      );
    Object.assign(saved, entries);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#unstored.set(taskId, {
      entries: { ...unstored.entries, ...entries },
      waiters: [...unstored.waiters, { resolve, reject }],
    });
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    this.#wake(key);
    return promise;
  }

  #forget(taskId: string, error: Error): void {
    for (const { reject } of this.#unstored.get(taskId)?.waiters ?? []) reject(error);
    this.#unstored.delete(taskId);
    this.#storing.delete(taskId);
    this.#shown.delete(taskId);
    this.#showing.delete(taskId);
  }

  get #intervalMs(): number {
    return this.#options.config.time.heartbeatInterval * 1_000;
  }

  /** News of a task, if it is time to show them; if not, they are shown then. */
  #progressToShow({ taskId, key, progress }: WorkingTask): Progress | undefined {
    const shown = this.#shown.get(taskId);
    if (!progress || shown?.progress === progress) return undefined;
    const due = shown === undefined ? 0 : shown.at + this.#intervalMs;
    if (due <= this.#options.clock.now()) return progress;
    this.#showLater(key, taskId, due);
    return undefined;
  }

  /** The first heartbeat is shown at once and later ones every few seconds, however many there are. */
  #heard(key: string, taskId: string): void {
    const working = this.#options.tasks.working(taskId);
    if (working && this.#progressToShow(working)) this.#wake(key);
  }

  readonly #scheduled = new Set<string>();

  #showLater(key: string, taskId: string, due: number): void {
    if (this.#scheduled.has(taskId)) return;
    this.#scheduled.add(taskId);
    this.#options.clock.after(due - this.#options.clock.now(), () => {
      this.#scheduled.delete(taskId);
      if (this.#options.tasks.isWorking(taskId)) this.#wake(key);
    });
  }
}

interface WaitUntil {
  readonly intervalMs?: number;
  readonly timeoutMs?: number;
  readonly reason?: string;
  readonly saved: Readonly<Record<string, string>>;
  readonly attempt: number;
  readonly now: number;
}

const DEFAULT_INTERVAL_MS = 5_000;
const DEFAULT_WAIT_MS = 1_800_000;

/** The moment of the first probe is saved, so that the time counts on through waits and restarts. */
async function waitUntil<O extends KubeObject>(
  probe: () => boolean | Promise<boolean>,
  {
    intervalMs = DEFAULT_INTERVAL_MS,
    timeoutMs = DEFAULT_WAIT_MS,
    reason = 'not ready yet',
    saved,
    attempt,
    now,
  }: WaitUntil,
): Promise<TaskOutcome<O>> {
  if (await probe()) return undefined;
  const [since, forAttempt] = (saved[WAITING_SINCE] ?? '').split('#');
  const first = forAttempt === String(attempt) ? Number(since) : now;
  if (now - first >= timeoutMs) throw new TimeoutError(`waited ${timeoutMs} ms: ${reason}`);
  const wait = { ms: intervalMs, reason };
  if (first !== now) return { wait };
  return { wait, checkpoint: { [WAITING_SINCE]: `${first}#${attempt}` } };
}
