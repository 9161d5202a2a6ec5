/**
 * Keeps a local copy of one kind in step with the API server: list, then
 * watch from the list's version, for ever. One loop owns everything; it ends
 * only by stop(), which is checked after every await. A watch that ended is
 * resumed where it was; a version the server no longer has (410) means a new
 * list, whose difference to the store is reported as ordinary changes.
 */
import type { KubeClient, ListOptions } from './client.ts';
import { type Clock, systemClock } from './clock.ts';
import { ApiError, apiErrorFrom, ConnectionError, Gone } from './errors.ts';
import { type KubeObject, objectKey, resourceName, type ResourceType, type Stored } from './resource-type.ts';

export type Change<T extends KubeObject> =
  | { readonly type: 'added'; readonly object: Stored<T> }
  | { readonly type: 'updated'; readonly object: Stored<T>; readonly old: Stored<T> }
  | { readonly type: 'deleted'; readonly object: Stored<T> };

export type ReflectorState = 'idle' | 'listing' | 'watching' | 'backoff' | 'stopped';

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
}

const PAGE_SIZE = 500;
/** Bookmarks come about every 60 s; a watch silent for longer is dead, whatever its socket says. */
const INACTIVITY_MS = 75_000;
const BACKOFF = { firstMs: 800, maxMs: 30_000, healthyAfterMs: 120_000 };

export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly #store = new Map<string, Stored<T>>();
  readonly #synced = Promise.withResolvers<void>();
  #loop: Promise<void> | undefined;
  #state: ReflectorState = 'idle';
  #resourceVersion = '0';
  #failures = 0;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    // Whoever does not wait for the first list must not be punished for it by an unhandled rejection.
    this.#synced.promise.catch(() => {});
  }

  get state(): ReflectorState {
    return this.#state;
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
    this.#loop ??= this.#run();
    return this;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    this.#state = 'stopped';
    this.#synced.reject(new Error(`the reflector of ${resourceName(this.#options.type)} was stopped`));
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let mustList = true;
    while (!signal.aborted) {
      const startedAt = this.#clock.now();
      try {
        if (mustList) await this.#list();
        mustList = false;
        if (signal.aborted) return;
        await this.#watch();
        this.#failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (this.#clock.now() - startedAt > BACKOFF.healthyAfterMs) this.#failures = 0;
        if (error instanceof Gone) mustList = true;
        else this.#report(error);
        if (!(error instanceof Gone) || this.#failures > 0) await this.#backOff(error);
      }
    }
  }

  async #list(): Promise<void> {
    this.#state = 'listing';
    // The first list may come from the server's cache; one after a 410 must not be older than what we had.
    const first = this.#resourceVersion === '0';
    const { signal } = this.#stopping;
    const items: Stored<T>[] = [];
    let page: string | undefined;
    let resourceVersion: string;
    do {
      const result = await this.#options.client.list(this.#options.type, {
        ...this.#scope(),
        signal,
        limit: PAGE_SIZE,
        continue: page,
        resourceVersion: first && page === undefined ? '0' : undefined,
      });
      items.push(...result.items);
      resourceVersion = result.metadata.resourceVersion;
      page = result.metadata.continue === '' ? undefined : result.metadata.continue;
    } while (page !== undefined && !signal.aborted);
    if (signal.aborted) return;
    this.#replace(items);
    this.#resourceVersion = resourceVersion;
    this.#synced.resolve();
  }

  #replace(items: readonly Stored<T>[]): void {
    const listed = new Set(items.map((item) => objectKey(item.metadata)));
    for (const [key, object] of this.#store) if (!listed.has(key)) this.#remove(key, object);
    for (const item of items) this.#put(item);
  }

  async #watch(): Promise<void> {
    this.#state = 'watching';
    const { client, type } = this.#options;
    const silence = new AbortController();
    const signal = AbortSignal.any([this.#stopping.signal, silence.signal]);
    let inactivity: NodeJS.Timeout | undefined;
    const onActivity = (): void => {
      clearTimeout(inactivity);
      inactivity = setTimeout(() => silence.abort(), INACTIVITY_MS);
    };
    onActivity();
    try {
      const events = client.watch(type, {
        ...this.#scope(),
        resourceVersion: this.#resourceVersion,
        timeoutSeconds: 300 + Math.floor(Math.random() * 300),
        signal,
        onActivity,
      });
      for await (const event of events) {
        if (this.#stopping.signal.aborted) return;
        if (event.type === 'ERROR')
          throw apiErrorFrom(
            { verb: 'watch', resource: resourceName(type) },
            event.object.code ?? 500,
            event.object,
          );
        if (event.type === 'DELETED') this.#remove(objectKey(event.object.metadata), event.object);
        else if (event.type !== 'BOOKMARK') this.#put(event.object);
        this.#resourceVersion = event.object.metadata.resourceVersion;
      }
    } catch (error) {
      // Silence is answered by a new connection, not by an error.
      if (!(signal.aborted && error instanceof ConnectionError)) throw error;
    } finally {
      clearTimeout(inactivity);
    }
  }

  #put(object: Stored<T>): void {
    const key = objectKey(object.metadata);
    delete object.metadata.managedFields;
    let old = this.#store.get(key);
    if (old && old.metadata.uid !== object.metadata.uid) {
      // Deleted and made anew while we were not looking.
      this.#remove(key, old);
      old = undefined;
    }
    if (old?.metadata.resourceVersion === object.metadata.resourceVersion) return;
    this.#store.set(key, object);
    this.#emit(old ? { type: 'updated', object, old } : { type: 'added', object });
  }

  #remove(key: string, object: Stored<T>): void {
    if (this.#store.delete(key)) this.#emit({ type: 'deleted', object });
  }

  #emit(change: Change<T>): void {
    try {
      this.#options.onChange?.(change);
    } catch (error) {
      this.#report(error);
    }
  }

  async #backOff(error: unknown): Promise<void> {
    this.#state = 'backoff';
    const ceiling = Math.min(BACKOFF.maxMs, BACKOFF.firstMs * 2 ** this.#failures++);
    const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
    await this.#clock.sleep(asked ?? Math.random() * ceiling, this.#stopping.signal);
  }

  #scope(): Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'> {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return { namespace, labelSelector, fieldSelector };
  }

  #report(error: unknown): void {
    this.#options.onError?.(error);
  }
}
