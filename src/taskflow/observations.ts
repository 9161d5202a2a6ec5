/**
 * What a kind has to ask somebody slow for, such as a database: asked in the
 * background, each with its own time limit, and read by passes from memory.
 * One that cannot be reached slows nobody but itself.
 */
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import { type KubeObject, objectKey, type Stored } from '../kube/resource-type.ts';
import type { Config } from '../runtime/config/schema.ts';
import type { Logger } from '../runtime/logging.ts';
import type { TaskManager } from '../task-manager/task-manager.ts';

export interface ObserverContext<O extends KubeObject = KubeObject> {
  readonly object: O;
  readonly signal: AbortSignal;
  readonly client: KubeClient;
  readonly config: Config;
  readonly log: Logger;
}

export interface ObserverDef<O extends KubeObject = KubeObject> {
  readonly run: (ctx: ObserverContext<O>) => Promise<unknown>;
  /** How old an observation may get; default 30 s. Looked at when the object is, which is at least that often. */
  readonly everyMs?: number;
  /** Default 10 s. */
  readonly timeoutMs?: number;
}

/** The last answer, and the error since, if there is one. */
export interface Observation<T = unknown> {
  readonly value: T | undefined;
  readonly error: Error | undefined;
  readonly at: number;
}

export interface ObservationsOptions<O extends KubeObject> {
  readonly kind: string;
  readonly observers: Readonly<Record<string, ObserverDef<O>>>;
  readonly tasks: TaskManager;
  readonly client: KubeClient;
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
}

const EVERY_MS = 30_000;
const TIMEOUT_MS = 10_000;

export class Observations<O extends KubeObject> {
  readonly #options: ObservationsOptions<O>;
  /** Beside the tasks of flows, and never taken for one of them. */
  readonly #kind: string;
  readonly #latest = new Map<string, Map<string, Observation>>();
  /** Names of observers that work, by object. */
  readonly #asking = new Map<string, Set<string>>();
  #asked = 0;

  constructor(options: ObservationsOptions<O>) {
    this.#options = options;
    this.#kind = `${options.kind}/observers`;
  }

  /** Tells the keys of objects of which something new is known. */
  subscribe(wake: (key: string) => void): () => void {
    const { tasks } = this.#options;
    return tasks.on('settled', (kind, key, taskId) => {
      if (kind !== this.#kind) return;
      const result = tasks.result(taskId);
      const name = taskId.split('#', 1)[0] ?? '';
      tasks.clean(taskId);
      this.#asking.get(key)?.delete(name);
      if (!result) return;
      const known = this.#latest.get(key) ?? new Map<string, Observation>();
      const old = known.get(name);
      const failed = result.status === 'failed';
      known.set(name, {
        value: failed ? old?.value : result.value,
        error: failed ? result.error : undefined,
        at: this.#options.clock.now(),
      });
      this.#latest.set(key, known);
      wake(key);
    });
  }

  get(key: string, name: string): Observation | undefined {
    if (!Object.hasOwn(this.#options.observers, name)) throw new Error(`there is no observer "${name}"`);
    return this.#latest.get(key)?.get(name);
  }

  /** Asks again where the last answer is too old. */
  refresh(object: Stored<O>): void {
    const { observers, clock } = this.#options;
    const key = objectKey(object.metadata);
    for (const [name, observer] of Object.entries(observers)) {
      const at = this.#latest.get(key)?.get(name)?.at ?? -Infinity;
      if (clock.now() - at >= (observer.everyMs ?? EVERY_MS)) this.#ask(key, name, observer, object);
    }
  }

  forget(key: string): void {
    this.#latest.delete(key);
    this.#asking.delete(key);
    this.#options.tasks.purge(this.#kind, key);
  }

  #ask(key: string, name: string, observer: ObserverDef<O>, object: Stored<O>): void {
    const { tasks, client, config } = this.#options;
    const asking = this.#asking.get(key) ?? new Set<string>();
    if (asking.has(name)) return;
    this.#asking.set(key, asking.add(name));
    const taskId = `${name}#${++this.#asked}`;
    const log = this.#options.log.child({ object: key, observer: name });
    tasks.submit({
      taskId,
      key,
      kind: this.#kind,
      flow: '',
      task: name,
      branch: name,
      poolClass: 'observe',
      timeoutMs: observer.timeoutMs ?? TIMEOUT_MS,
      settleMs: 0,
      fn: ({ signal }) => observer.run({ object, signal, client, config, log }),
    });
  }
}
