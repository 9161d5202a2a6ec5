/** What a task is to its author, and the set of a kind's tasks. */
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import type { EventType } from '../kube/event-recorder.ts';
import type { KindSchema, ObjectOf } from '../kube/schema/define-schema.ts';
import type { KubeObject, Stored } from '../kube/resource-type.ts';
import type { Config } from '../runtime/config/schema.ts';
import type { Logger } from '../runtime/logging.ts';
import type { PoolClass, TaskProgress } from '../task-manager/task-manager.ts';
import { taskName } from './task-name.ts';

type StatusOf<O extends KubeObject> = O extends { status?: infer S } ? NonNullable<S> : never;
/** Fields to merge into the status; null takes one away. */
export type StatusPatch<O extends KubeObject> = {
  readonly [F in keyof StatusOf<O>]?: StatusOf<O>[F] | null;
};

/** "Not yet": the task runs again later, and holds no place meanwhile. Made by `ctx.wait`. */
export interface WaitOutcome<O extends KubeObject = KubeObject> {
  readonly wait: { readonly ms: number; readonly reason: string };
  readonly status?: StatusPatch<O>;
  readonly checkpoint?: Readonly<Record<string, string>>;
}

export interface DoneOutcome<O extends KubeObject = KubeObject> {
  readonly wait?: never;
  readonly status?: StatusPatch<O>;
}

export type TaskOutcome<O extends KubeObject = KubeObject> = void | DoneOutcome<O> | WaitOutcome<O>;

export interface TaskContext<O extends KubeObject = KubeObject> {
  /** The object as it was when the attempt began. */
  readonly object: Stored<O>;
  /** `namespace/name` */
  readonly key: string;
  readonly flow: string;
  readonly flowId: string;
  readonly task: string;
  readonly taskId: string;
  /** From 1; the same again after a restart of the operator. */
  readonly attempt: number;
  /** Of a member made by `foreach`: its item. Of a graph: the id of the node. */
  readonly item: string | undefined;
  /** What earlier runs of this task have saved. */
  readonly saved: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly client: KubeClient;
  readonly log: Logger;
  readonly config: Config;
  readonly clock: Clock;
  /** For systems that accept a fencing token. */
  readonly fence: { readonly holder: string; readonly epoch: number };
  /** Throws if the task was told to stop or this process no longer leads. Call it before every side effect. */
  guard(): Promise<void>;
  event(type: EventType, reason: string, message: string): void;
  heartbeat(progress?: TaskProgress): void;
  /** Resolves when it is stored: what is saved before a side effect is there after a crash. */
  checkpoint(entries: Readonly<Record<string, string>>): Promise<void>;
  wait(ms: number, reason: string): WaitOutcome<O>;
  /** Waits between probes without holding a place; return what it returns. */
  waitUntil(
    probe: () => boolean | Promise<boolean>,
    options?: { readonly intervalMs?: number; readonly timeoutMs?: number; readonly reason?: string },
  ): Promise<TaskOutcome<O>>;
  /** The object as it is now. */
  refresh(): Promise<Stored<O>>;
}

export type TaskFn<O extends KubeObject = KubeObject> = (ctx: TaskContext<O>) => Promise<TaskOutcome<O>>;

export interface TaskOptions<O extends KubeObject = KubeObject> {
  readonly run: TaskFn<O>;
  /** Where the name in the status is not that of the key. */
  readonly name?: string;
  /** For one attempt with its waits; default 30 min. */
  readonly timeoutMs?: number;
  /** How long it may be silent; default for ever. */
  readonly heartbeatMs?: number;
  readonly poolClass?: PoolClass;
  /** When the operator ended while it ran: run it again (the default), find its work again, or fail. */
  readonly onInterrupt?: 'rerun' | 'reattach' | 'fail';
  /** Finds the work of the interrupted attempt by what that had saved. */
  readonly reattach?: TaskFn<O>;
  /** Neither cancel nor shutdown ends it. */
  readonly critical?: boolean;
  /** Whether it is given up when it ignores its signal; default true. */
  readonly detachable?: boolean;
  /** How long it may take to heed its signal; default 30 s. */
  readonly cancelSettleMs?: number;
  readonly description?: string;
}

export interface TaskDef<O extends KubeObject = KubeObject> extends TaskOptions<O> {
  readonly name: string;
}

/** The tasks of a kind, by the key they are written under. */
export type TaskHub<O extends KubeObject, K extends string = string> = {
  readonly [key in K]: TaskDef<O>;
};

/** Names come from the keys, by ob-operator's rule: `createOBServerPVC` is `create observer pvc`. */
export function defineTasks<S extends KindSchema, K extends string>(
  _schema: S,
  tasks: { readonly [key in K]: TaskFn<ObjectOf<S>> | TaskOptions<ObjectOf<S>> },
): TaskHub<ObjectOf<S>, K> {
  const entries = Object.entries<TaskFn<ObjectOf<S>> | TaskOptions<ObjectOf<S>>>(tasks).map(([key, task]) => {
    const options = typeof task === 'function' ? { run: task } : task;
    if (options.onInterrupt === 'reattach' && !options.reattach)
      throw new Error(`task ${key}: onInterrupt is "reattach", but there is no reattach function`);
    return [key, { ...options, name: options.name ?? taskName(key) }] as const;
  });
  return Object.fromEntries(entries) as TaskHub<ObjectOf<S>, K>;
}
