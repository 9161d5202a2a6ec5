/**
 * One reflector per namespace, shared by any number of handlers. A handler
 * that comes late first hears of what is there. Handlers are synchronous and
 * only note keys; what one throws is caught and counted, the others go on.
 *
 * Own writes: the event of a write often comes before its response. What comes
 * for an object while write() is under way is stored at once, but handlers
 * hear of it only when the response tells whose work it was.
 */
import type { Change } from './change.ts';
import { type Clock, systemClock } from './clock.ts';
import { type Indexer, ObjectStore } from './object-store.ts';
import type { Predicate } from './predicates.ts';
import { Reflector, type ReflectorOptions } from './reflector.ts';
import { HandlerError, type ReflectorHealth, type ReflectorState } from './reflector-health.ts';
import {
  type KubeObject,
  objectKey,
  type ObjectRef,
  resourceName,
  type ResourceType,
  type Stored,
} from './resource-type.ts';

export interface InformerOptions<T extends KubeObject> extends Omit<
  ReflectorOptions<T>,
  'onChange' | 'store' | 'namespace'
> {
  /** Only these; all by default. */
  readonly namespaces?: readonly string[];
  readonly indexers?: Readonly<Record<string, Indexer<T>>>;
  /** How often handlers hear of every object again, give or take a tenth; default 10 h, 0 never. */
  readonly resyncMs?: number;
  /** Whoever changes a stored object gets an error; default only under NODE_ENV=test. */
  readonly freeze?: boolean;
}

export type ChangeHandler<T extends KubeObject> = (change: Change<T>) => void;

const RESYNC_MS = 10 * 60 * 60 * 1000;
/** The worst first, for the state of several reflectors together. */
const STATES: readonly ReflectorState[] = ['stopped', 'idle', 'backoff', 'listing', 'watching'];

interface Part<T extends KubeObject> {
  readonly namespace: string | undefined;
  readonly store: ObjectStore<T>;
  readonly reflector: Reflector<T>;
}

interface Subscription<T extends KubeObject> {
  readonly handler: ChangeHandler<T>;
  readonly predicate: Predicate<T> | undefined;
}

/** Writes of one object that are under way, and what came meanwhile. */
interface PendingWrites<T extends KubeObject> {
  count: number;
  readonly versions: Set<string>;
  readonly held: Change<T>[];
}

export class Informer<T extends KubeObject> {
  readonly type: ResourceType<T>;
  /** Resolves after the first complete list of every namespace; rejects if stopped before. */
  readonly synced: Promise<void>;
  readonly #options: InformerOptions<T>;
  readonly #clock: Clock;
  readonly #parts: readonly [Part<T>, ...Part<T>[]];
  readonly #subscriptions = new Set<Subscription<T>>();
  readonly #writes = new Map<string, PendingWrites<T>>();
  readonly #stopping = new AbortController();
  #resyncing: Promise<void> | undefined;
  #handlerErrors = 0;

  constructor(options: InformerOptions<T>) {
    this.type = options.type;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const [first, ...others] = options.namespaces?.length ? options.namespaces : [undefined];
    this.#parts = [this.#part(first), ...others.map((namespace) => this.#part(namespace))];
    this.synced = Promise.all(this.#parts.map(({ reflector }) => reflector.synced)).then(() => undefined);
    this.synced.catch(() => {});
  }

  start(): this {
    for (const { reflector } of this.#parts) reflector.start();
    this.#resyncing ??= this.#resync(this.#options.resyncMs ?? RESYNC_MS);
    return this;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#parts.map(({ reflector }) => reflector.stop()), this.#resyncing]);
  }

  /**
   * By `namespace/name`, or the bare name of a cluster-wide object. The object
   * is shared: do not change it. It is not whole either (see stored-form.ts):
   * patch what you want changed, do not send it back as an update.
   */
  get(key: string): Stored<T> | undefined {
    return this.#partOf(key)?.store.get(key);
  }

  *values(): Generator<Stored<T>> {
    for (const { store } of this.#parts) yield* store.values();
  }

  byIndex(name: string, value: string): Stored<T>[] {
    return this.#parts.flatMap(({ store }) => store.byIndex(name, value));
  }

  /** For who comes late to a shared informer; see ObjectStore.addIndexers. */
  addIndexers(indexers: Readonly<Record<string, Indexer<T>>>): void {
    for (const { store } of this.#parts) store.addIndexers(indexers);
  }

  /** Of all namespaces together: the worst state, the oldest activity, sums. */
  get health(): ReflectorHealth {
    const all = this.#parts.map(({ reflector }) => reflector.health);
    const sum = (count: (health: ReflectorHealth) => number): number =>
      all.reduce((total, health) => total + count(health), 0);
    return {
      state: STATES.find((state) => all.some((health) => health.state === state)) ?? 'idle',
      synced: all.every(({ synced }) => synced),
      resourceVersion: all[0]?.resourceVersion ?? '',
      objects: sum(({ objects }) => objects),
      lastActivity: Math.min(...all.map(({ lastActivity }) => lastActivity)),
      stale: all.some(({ stale }) => stale),
      lastError: all.find(({ lastError }) => lastError !== undefined)?.lastError,
      relists: sum(({ relists }) => relists),
      reconnects: sum(({ reconnects }) => reconnects),
      misses: sum(({ misses }) => misses),
      handlerErrors: this.#handlerErrors,
    };
  }

  /** Changes from now on, after those that make up what is there now. Returns how to unsubscribe. */
  subscribe(handler: ChangeHandler<T>, { predicate }: { predicate?: Predicate<T> } = {}): () => void {
    const subscription = { handler, predicate };
    this.#subscriptions.add(subscription);
    for (const { store } of this.#parts)
      for (const object of store.values())
        this.#tell(subscription, { type: 'added', object, origin: 'initial', own: false });
    return () => this.#subscriptions.delete(subscription);
  }

  /** What a write of ours returned: reads see it from now on. Prefer write(), which also marks the event. */
  observeWrite(object: Stored<T>): void {
    const key = objectKey(object.metadata);
    this.#writes.get(key)?.versions.add(object.metadata.resourceVersion);
    this.#partOf(key)?.store.observeWrite(object);
  }

  /** Runs a write of one object; its event is `own` for handlers, whichever of response and event is first. */
  async write(ref: ObjectRef, write: () => Promise<Stored<T>>): Promise<Stored<T>> {
    const key = objectKey(ref);
    const pending = this.#writes.get(key) ?? { count: 0, versions: new Set(), held: [] };
    this.#writes.set(key, pending);
    pending.count++;
    try {
      const object = await write();
      this.observeWrite(object);
      return object;
    } finally {
      pending.count--;
      if (pending.count === 0) this.#release(key, pending);
    }
  }

  #part(namespace: string | undefined): Part<T> {
    const { indexers, freeze = process.env['NODE_ENV'] === 'test', ...options } = this.#options;
    const store = new ObjectStore<T>({ ...(indexers && { indexers }), freeze, clock: this.#clock });
    const onChange = (change: Change<T>): void => this.#changed(change);
    const scope = namespace === undefined ? {} : { namespace };
    return { namespace, store, reflector: new Reflector({ ...options, ...scope, store, onChange }) };
  }

  #partOf(key: string): Part<T> | undefined {
    const [only] = this.#parts;
    if (only.namespace === undefined) return only;
    const namespace = key.slice(0, Math.max(0, key.indexOf('/')));
    return this.#parts.find((part) => part.namespace === namespace);
  }

  #changed(change: Change<T>): void {
    const pending = this.#writes.get(objectKey(change.object.metadata));
    if (pending) pending.held.push(change);
    else this.#tellAll(change);
  }

  #release(key: string, { versions, held }: PendingWrites<T>): void {
    this.#writes.delete(key);
    for (const change of held) {
      const ours = change.origin === 'watch' && versions.has(change.object.metadata.resourceVersion);
      this.#tellAll(ours ? { ...change, own: true } : change);
    }
  }

  #tellAll(change: Change<T>): void {
    for (const subscription of this.#subscriptions) this.#tell(subscription, change);
  }

  #tell({ handler, predicate }: Subscription<T>, change: Change<T>): void {
    try {
      if (predicate === undefined || predicate(change)) handler(change);
    } catch (error) {
      const key = objectKey(change.object.metadata);
      this.#handlerErrors++;
      this.#report(key, new HandlerError(resourceName(this.type), key, error));
    }
  }

  /** Whoever listens must not be able to stop us. */
  #report(key: string, error: HandlerError): void {
    try {
      this.#options.observer?.handlerFailed?.(key);
      this.#options.onError?.(error);
    } catch {
      // There is nobody left to tell.
    }
  }

  async #resync(everyMs: number): Promise<void> {
    const { signal } = this.#stopping;
    const random = this.#options.random ?? Math.random;
    if (everyMs <= 0) return;
    while (!signal.aborted) {
      await this.#clock.sleep(everyMs * (0.9 + 0.2 * random()), signal);
      if (signal.aborted) return;
      for (const object of this.values())
        this.#changed({ type: 'updated', object, old: object, origin: 'resync', own: false });
    }
  }
}
