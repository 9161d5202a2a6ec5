/**
 * Keeps a local copy of one kind in step with the API server: list, then
 * watch from the list's version, for ever. One loop owns everything; it ends
 * only by stop(), which is checked after every await. A watch that ended is
 * resumed where it was; a version the server no longer has (410) means a new
 * list, whose difference to the store is reported as ordinary changes. Every
 * ten minutes a second list beside the watch looks for what the watch missed.
 */
import type { Change } from './change.ts';
import { isInitialEventsEnd, type KubeClient, type ListOptions, type WatchEvent } from './client.ts';
import { type Clock, systemClock } from './clock.ts';
import { type ApiError, apiErrorFrom } from './errors.ts';
import { Inactivity } from './inactivity.ts';
import { MissSearch } from './miss-search.ts';
import { ObjectStore } from './object-store.ts';
import { Pace } from './pace.ts';
import { pagesOf } from './pages.ts';
import { type Ending, type Recovery, RecoveryPlan, type RecoveryTiming } from './recovery.ts';
import {
  HandlerError,
  MissedChanges,
  type ReflectorHealth,
  type ReflectorObserver,
  type ReflectorState,
} from './reflector-health.ts';
import { type KubeObject, objectKey, resourceName, type ResourceType, type Stored } from './resource-type.ts';
import { strippedOf } from './stored-form.ts';

export type { Change } from './change.ts';
export type { ReflectorState } from './reflector-health.ts';

export interface ReflectorTiming extends RecoveryTiming {
  /** Bookmarks come about every 60 s; a watch silent for longer is dead, whatever its socket says. */
  readonly inactivityMs: number;
  /** Between two searches for missed changes, give or take a tenth. */
  readonly relistMs: number;
  /** How late an event may be before it counts as missed. */
  readonly missGraceMs: number;
  readonly staleAfterMs: number;
}

export interface ReflectorOptions<T extends KubeObject> {
  readonly client: KubeClient;
  readonly type: ResourceType<T>;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Synchronous and short: it runs between two watch events. */
  readonly onChange?: (change: Change<T>) => void;
  readonly onError?: (error: unknown) => void;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly observer?: ReflectorObserver;
  /** Where objects are kept; its own one by default. */
  readonly store?: ObjectStore<T>;
  /** False: lists come page by page even if the server can stream them. */
  readonly streamLists?: boolean;
  readonly timing?: Partial<ReflectorTiming>;
}

const TIMING: ReflectorTiming = {
  inactivityMs: 75_000,
  backoff: { firstMs: 800, maxMs: 30_000 },
  slowBackoff: { firstMs: 3_000, maxMs: 12_000 },
  healthyAfterMs: 120_000,
  relistMs: 600_000,
  missGraceMs: 5_000,
  staleAfterMs: 180_000,
};
const WATCH_TIMEOUT_SECONDS = { min: 300, max: 600 };
/** Streams that break in the middle so often give way to pages, which are kept one by one. */
const MAX_BROKEN_STREAMS = 2;

export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #timing: ReflectorTiming;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #stopping = new AbortController();
  readonly #store: ObjectStore<T>;
  readonly #synced = Promise.withResolvers<void>();
  readonly #counts = { relists: 0, reconnects: 0, misses: 0, handlerErrors: 0 };
  #loop: Promise<unknown> | undefined;
  #state: ReflectorState = 'idle';
  /** The list that must come before the next watch. */
  #due: 'first' | 'again' | undefined = 'first';
  #isSynced = false;
  #resourceVersion = '';
  #lastActivity = 0;
  #lastError: unknown;
  #streams: boolean;
  #brokenStreams = 0;
  #search: MissSearch<T> | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#store = options.store ?? new ObjectStore({ clock: this.#clock });
    this.#streams = options.streamLists ?? true;
    // Whoever does not wait for the first list must not be punished for it by an unhandled rejection.
    this.#synced.promise.catch(() => {});
  }

  get state(): ReflectorState {
    return this.#state;
  }

  get health(): ReflectorHealth {
    return {
      state: this.#state,
      synced: this.#isSynced,
      resourceVersion: this.#resourceVersion,
      objects: this.#store.size,
      lastActivity: this.#lastActivity,
      stale: this.#clock.now() - this.#lastActivity > this.#timing.staleAfterMs,
      lastError: this.#lastError,
      ...this.#counts,
    };
  }

  /** Resolves after the first complete list; rejects if stopped before. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get(key: string): Stored<T> | undefined {
    return this.#store.get(key);
  }

  values(): Iterable<Stored<T>> {
    return this.#store.values();
  }

  start(): this {
    this.#loop ??= Promise.all([this.#run(), this.#searchForMisses()]);
    return this;
  }

  /** Resolves when nothing of it runs any more and its connection is given up. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error(`the reflector of ${resourceName(this.#options.type)} stops`));
    await this.#loop;
    this.#enter('stopped');
    this.#synced.reject(new Error(`the reflector of ${resourceName(this.#options.type)} was stopped`));
  }

  async #run(): Promise<void> {
    const plan = new RecoveryPlan(this.#timing, this.#random);
    while (!this.#stopping.signal.aborted) {
      const began = this.#clock.monotonic();
      const streamedList = this.#due !== undefined && this.#mayStream();
      const ending = await this.#session().catch((error: unknown): Ending => ({ why: 'failed', error }));
      this.#store.watchEnded();
      // What it waits for may come much later now.
      this.#search?.abandon();
      if (this.#stopping.signal.aborted) return;
      const lastedMs = this.#clock.monotonic() - began;
      await this.#recover(plan.after({ ending, lastedMs, streamedList }));
    }
  }

  async #session(): Promise<Ending> {
    if (this.#due !== undefined && !this.#mayStream()) await this.#listPages();
    if (this.#stopping.signal.aborted) return { why: 'ended' };
    return this.#watch();
  }

  #mayStream(): boolean {
    return this.#streams && this.#brokenStreams < MAX_BROKEN_STREAMS;
  }

  async #recover({ relist, noStreams, reconnect, report, waitMs }: Recovery): Promise<void> {
    if (relist) this.#due = 'again';
    if (noStreams) this.#streams = false;
    if (report !== undefined) {
      this.#lastError = report;
      this.#report(report);
    }
    if (reconnect !== undefined) {
      this.#counts.reconnects++;
      this.#observe((observer) => observer.reconnected?.(reconnect));
    }
    if (waitMs === 0) return;
    this.#enter('backoff');
    await this.#clock.sleep(waitMs, this.#stopping.signal);
  }

  async #listPages(): Promise<void> {
    this.#enter('listing');
    const { client, type } = this.#options;
    const startedAt = this.#clock.monotonic();
    const items = new Map<string, Stored<T>>();
    let resourceVersion = '';
    const options = {
      ...this.#scope(),
      // The first list may come from the server's cache; a later one must not be older than what we had.
      ...(this.#due === 'first' && { resourceVersion: '0' }),
      signal: this.#stopping.signal,
    };
    const pages = pagesOf(options, (page, first) => {
      if (first) items.clear();
      return client.listEach(type, page, (item) => {
        this.#lastActivity = this.#clock.now();
        items.set(objectKey(item.metadata), this.#known(item));
      });
    });
    for await (const { metadata } of pages) ({ resourceVersion } = metadata);
    if (!this.#stopping.signal.aborted) this.#listed(items, resourceVersion, startedAt);
  }

  /** The list is complete. */
  #listed(items: ReadonlyMap<string, Stored<T>>, resourceVersion: string, startedAt: number): void {
    const first = this.#due === 'first';
    this.#due = undefined;
    this.#brokenStreams = 0;
    this.#resourceVersion = resourceVersion;
    this.#counts.relists++;
    this.#observe((observer) => observer.relisted?.(first ? 'start' : 'gone'));
    // What the search compares with is no longer there.
    this.#search?.abandon();
    this.#emit(this.#store.replace(items, first ? 'initial' : 'list', startedAt));
    this.#isSynced = true;
    this.#synced.resolve();
  }

  /** One connection. If a list is due, it comes first in the same stream. */
  async #watch(): Promise<Ending> {
    const staged = this.#due === undefined ? undefined : new Map<string, Stored<T>>();
    const silence = new AbortController();
    const pace = new Pace();
    using inactivity = new Inactivity(this.#clock, this.#timing.inactivityMs, () => silence.abort());
    const startedAt = this.#clock.monotonic();
    let heard = false;
    if (staged) this.#enter('listing');
    const events = this.#options.client.watch(this.#options.type, {
      ...this.#scope(),
      ...(staged ? this.#initialEvents() : { resourceVersion: this.#resourceVersion }),
      timeoutSeconds: between(WATCH_TIMEOUT_SECONDS, this.#random),
      signal: AbortSignal.any([this.#stopping.signal, silence.signal]),
      onActivity: () => {
        this.#lastActivity = this.#clock.now();
        inactivity.touch();
        if (heard) return;
        heard = true;
        if (staged) this.#brokenStreams++;
        else this.#watching();
      },
    });
    try {
      for await (const event of events) {
        if (this.#stopping.signal.aborted) break;
        if (this.#due !== undefined && staged) this.#stage(event, staged, startedAt);
        else this.#apply(event);
        await pace.breathe();
      }
    } catch (error) {
      // Silence is answered by a new connection, not by an error.
      if (!silence.signal.aborted || this.#stopping.signal.aborted) throw error;
      return { why: 'silent' };
    }
    return { why: 'ended' };
  }

  /** From the server's cache the first time, not older than now afterwards. */
  #initialEvents(): {
    sendInitialEvents: true;
    resourceVersionMatch: 'NotOlderThan';
    resourceVersion: string;
  } {
    return {
      sendInitialEvents: true,
      resourceVersionMatch: 'NotOlderThan',
      resourceVersion: this.#due === 'first' ? '0' : '',
    };
  }

  #stage(event: WatchEvent<T>, staged: Map<string, Stored<T>>, startedAt: number): void {
    switch (event.type) {
      case 'ERROR':
        throw this.#errorOf(event.object);
      case 'ADDED':
      case 'MODIFIED':
        staged.set(objectKey(event.object.metadata), this.#known(event.object));
        return;
      case 'DELETED':
        staged.delete(objectKey(event.object.metadata));
        return;
      case 'BOOKMARK':
        if (!isInitialEventsEnd(event)) return;
        this.#listed(staged, event.object.metadata.resourceVersion, startedAt);
        // Else it would hold on to what the store has long replaced.
        staged.clear();
        this.#watching();
    }
  }

  #apply(event: WatchEvent<T>): void {
    switch (event.type) {
      case 'ERROR':
        throw this.#errorOf(event.object);
      case 'ADDED':
      case 'MODIFIED':
        this.#search?.touch(objectKey(event.object.metadata));
        this.#emit(this.#store.put(event.object, 'watch'));
        break;
      case 'DELETED':
        this.#search?.touch(objectKey(event.object.metadata));
        this.#emit(this.#store.remove(event.object, 'watch'));
        break;
      case 'BOOKMARK':
        break;
    }
    this.#resourceVersion = event.object.metadata.resourceVersion;
  }

  #watching(): void {
    this.#enter('watching');
    this.#lastError = undefined;
    this.#store.watchBegan();
  }

  /** What is in the store already need not be kept twice while a list is under way. */
  #known(object: Stored<T>): Stored<T> {
    const known = this.#store.base(objectKey(object.metadata));
    const same =
      known?.metadata.uid === object.metadata.uid &&
      known.metadata.resourceVersion === object.metadata.resourceVersion;
    return same ? known : strippedOf(object);
  }

  #errorOf(status: Extract<WatchEvent<T>, { type: 'ERROR' }>['object']): ApiError {
    const attempt = {
      verb: 'watch',
      resource: resourceName(this.#options.type),
      object: this.#options.namespace,
    };
    return apiErrorFrom(attempt, status.code ?? 500, status);
  }

  /** Looks for what the watch missed, beside it, every now and then. */
  async #searchForMisses(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#clock.sleep(this.#timing.relistMs * (0.9 + 0.2 * this.#random()), signal);
      if (signal.aborted || this.#state !== 'watching') continue;
      this.#search = new MissSearch({
        client: this.#options.client,
        type: this.#options.type,
        scope: this.#scope(),
        store: this.#store,
        clock: this.#clock,
        graceMs: this.#timing.missGraceMs,
        signal,
      });
      try {
        this.#correct(await this.#search.run());
      } catch (error) {
        if (!signal.aborted) this.#report(error);
      } finally {
        this.#search = undefined;
      }
    }
  }

  #correct(missed: ReadonlyMap<string, Stored<T> | undefined>): void {
    this.#counts.relists++;
    this.#observe((observer) => observer.relisted?.('safety'));
    if (missed.size === 0) return;
    this.#counts.misses += missed.size;
    this.#observe((observer) => observer.missed?.(missed.size));
    this.#report(new MissedChanges(resourceName(this.#options.type), [...missed.keys()]));
    for (const [key, object] of missed) {
      const base = this.#store.base(key);
      if (object) this.#emit(this.#store.put(object, 'relist'));
      else if (base) this.#emit(this.#store.remove(base, 'relist'));
    }
  }

  #emit(changes: readonly Change<T>[]): void {
    if (!this.#options.onChange) return;
    for (const change of changes) {
      try {
        this.#options.onChange(change);
      } catch (error) {
        const key = objectKey(change.object.metadata);
        this.#counts.handlerErrors++;
        this.#observe((observer) => observer.handlerFailed?.(key));
        this.#report(new HandlerError(resourceName(this.#options.type), key, error));
      }
    }
  }

  #enter(state: ReflectorState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#observe((observer) => observer.state?.(state));
  }

  #observe(tell: (observer: ReflectorObserver) => void): void {
    try {
      if (this.#options.observer) tell(this.#options.observer);
    } catch (error) {
      this.#report(error);
    }
  }

  /** Whoever listens must not be able to end the loop. */
  #report(error: unknown): void {
    try {
      this.#options.onError?.(error);
    } catch {
      // There is nobody left to tell.
    }
  }

  #scope(): Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'> {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return { namespace, labelSelector, fieldSelector };
  }
}

function between({ min, max }: { min: number; max: number }, random: () => number): number {
  return min + Math.floor(random() * (max - min));
}
