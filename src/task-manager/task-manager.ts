/**
 * Runs tasks and keeps two maps: what works, and what has ended and was not
 * collected yet. It knows nothing of Kubernetes or flows: a task is an id, a
 * slot that it occupies, and a function.
 */
import type { Clock } from '../kube/clock.ts';

export const POOL_CLASSES = ['default', 'sql', 'job', 'observe'] as const;
export type PoolClass = (typeof POOL_CLASSES)[number];

export const PRIORITY = { deletion: 10, recovery: 10, user: 5, other: 0 } as const;

/** What a running task may tell while it runs. */
export interface TaskProgress {
  readonly percent?: number;
  readonly message?: string;
}

/** What the function of a task gets from the manager. */
export interface TaskRun {
  /** Aborted on time-out, lost heartbeat, cancel and shutdown; its reason is an Error. */
  readonly signal: AbortSignal;
  /** A sign of life, which also counts for `heartbeatMs`. */
  heartbeat(progress?: TaskProgress): void;
}

export interface TaskSpec {
  readonly taskId: string;
  /** Object that the task works on, `namespace/name`. */
  readonly key: string;
  readonly kind: string;
  readonly flow: string;
  readonly task: string;
  /** Within the object, where several tasks run at once; default ''. */
  readonly branch?: string;
  readonly fn: (run: TaskRun) => Promise<unknown>;
  readonly timeoutMs?: number;
  readonly heartbeatMs?: number;
  readonly priority?: number;
  readonly poolClass?: PoolClass;
  /** Not aborted by drain and cancel; drain waits for it. Default false. */
  readonly critical?: boolean;
  /** Whether its slot is freed when it ignores its signal; default true. */
  readonly detachable?: boolean;
  /** How long it may take to heed its signal; default 30 s. */
  readonly settleMs?: number;
}

export type TaskResult =
  | { readonly status: 'successful'; readonly value: unknown; readonly finishedAt: number }
  | { readonly status: 'failed'; readonly error: Error; readonly finishedAt: number };

/** One line of `/debug/tasks`. */
export interface WorkingTask {
  readonly taskId: string;
  readonly key: string;
  readonly kind: string;
  readonly flow: string;
  readonly task: string;
  readonly branch: string;
  readonly submittedAt: number;
  /** Absent while it waits for a place in its pool. */
  readonly startedAt: number | undefined;
  readonly aborted: boolean;
  readonly progress: (TaskProgress & { readonly heartbeatAt: number }) | undefined;
}

export interface TaskManagerObserver {
  started?(task: WorkingTask): void;
  /** `ms`: how long it ran. Also called, with a CanceledError, for what is purged: every start has its end. */
  settled?(task: WorkingTask, result: TaskResult, ms: number): void;
  /** It ignored its signal, and nobody waits for it any longer. */
  detached?(task: WorkingTask): void;
  /** A result that nobody collected was dropped. */
  dropped?(taskId: string): void;
}

export interface TaskManagerOptions {
  readonly clock?: Clock;
  /** Of all classes together; default 500. */
  readonly poolSize?: number;
  readonly concurrency?: Partial<Record<PoolClass, number>>;
  readonly observer?: TaskManagerObserver;
  /** For the log: why a task failed unless it was canceled, and what listeners and observers threw. */
  readonly onError?: (error: Error, task: WorkingTask) => void;
}

/** Who listens hears kind and key of the object, and the id of the task. */
export type TaskListener = (kind: string, key: string, taskId: string) => void;

export interface TaskManager {
  /**
   * Throws if the slot (kind, key, branch) has a running attempt, if the id is in use, or after drain.
   * The function is called later, never before submit returns.
   */
  submit(spec: TaskSpec): void;
  result(taskId: string): TaskResult | undefined;
  isWorking(taskId: string): boolean;
  working(taskId: string): WorkingTask | undefined;
  /** Ids of the tasks that work on the object. */
  workingOn(kind: string, key: string): string[];
  /** Forgets a result; an id that is not there is fine. */
  clean(taskId: string): void;
  /** Asks a task to end: its result will be a CanceledError, unless it succeeds all the same. */
  abort(taskId: string, reason: string): void;
  /** The object is gone: aborts its tasks, critical ones too, and forgets everything about it. */
  purge(kind: string, key: string): void;
  /** Forgets the results of the object but for these ids. */
  retain(kind: string, key: string, taskIds: ReadonlySet<string>): void;
  /** Takes nothing more, aborts what is not critical, waits; the ids of what is still alive. */
  drain(ms: number): Promise<string[]>;
  on(event: 'settled' | 'heartbeat', listener: TaskListener): () => void;
  snapshot(): { readonly working: readonly WorkingTask[]; readonly results: readonly string[] };
}
