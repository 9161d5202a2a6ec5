/**
 * Objects of one kind by key, as raw JSON without what only the API server
 * needs, with indexes. Reads see our own writes: an object that a write
 * returned covers what the watch has told so far, until the event of that
 * write comes. Versions are compared for equality only. In an unbroken watch
 * the event of our write comes before everything newer, so until then every
 * other event of the object is older; after a gap the list decides.
 *
 * `#objects` is what readers see. Where a write of ours covers the server's
 * word, the latter waits as `base` beside it.
 */
import { type Clock, systemClock } from './clock.ts';
import type { Change, Origin } from './change.ts';
import { deepFreeze, strippedOf } from './stored-form.ts';
import { type KubeObject, objectKey, type Stored } from './resource-type.ts';

/** The values under which an object is found, e.g. the uids of its owners. */
export type Indexer<T extends KubeObject> = (object: Stored<T>) => readonly string[];

export interface ObjectStoreOptions<T extends KubeObject> {
  readonly indexers?: Readonly<Record<string, Indexer<T>>>;
  /** Whoever changes a stored object gets an error. For tests: it costs time. */
  readonly freeze?: boolean;
  readonly clock?: Clock;
}

interface OwnWrite<T extends KubeObject> {
  /** What readers see. */
  latest: Stored<T>;
  /** Versions of our writes whose events have not come. */
  readonly awaited: Set<string>;
  /** The server's word so far. */
  base: Stored<T> | undefined;
  /** Monotonic time of the last write. */
  at: number;
}

/** A watch that is up for so long would have told of the write: it was collapsed into another event. */
const OWN_WRITE_PATIENCE_MS = 10_000;
/** Events that may come between the event of a write and its response. */
const RECENT_EVENTS = 1024;

export class ObjectStore<T extends KubeObject> {
  readonly #clock: Clock;
  readonly #freeze: boolean;
  readonly #objects = new Map<string, Stored<T>>();
  readonly #own = new Map<string, OwnWrite<T>>();
  readonly #recent = new Set<string>();
  readonly #indexes = new Map<string, Index<T>>();
  #watchingSince: number | undefined;

  constructor({ indexers = {}, freeze = false, clock = systemClock }: ObjectStoreOptions<T> = {}) {
    this.#clock = clock;
    this.#freeze = freeze;
    this.addIndexers(indexers);
  }

  /** An index of a name that is taken stays as it is: whoever asks for the same name means the same. */
  addIndexers(indexers: Readonly<Record<string, Indexer<T>>>): void {
    for (const [name, indexer] of Object.entries(indexers)) {
      if (this.#indexes.has(name)) continue;
      const index = new Index(indexer);
      for (const [key, object] of this.#objects) index.update(key, undefined, object);
      this.#indexes.set(name, index);
    }
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): Stored<T> | undefined {
    this.#forgetCollapsed();
    return this.#objects.get(key);
  }

  values(): IterableIterator<Stored<T>> {
    this.#forgetCollapsed();
    return this.#objects.values();
  }

  byIndex(name: string, value: string): Stored<T>[] {
    this.#forgetCollapsed();
    const index = this.#indexes.get(name);
    if (!index)
      throw new Error(`no index "${name}"; there are: ${[...this.#indexes.keys()].join(', ') || 'none'}`);
    return index.keys(value).flatMap((key) => this.#objects.get(key) ?? []);
  }

  /** What the server said last, whatever we wrote since. */
  base(key: string): Stored<T> | undefined {
    const own = this.#own.get(key);
    return own ? own.base : this.#objects.get(key);
  }

  *baseKeys(): Generator<string> {
    for (const key of this.#objects.keys()) if (this.base(key)) yield key;
  }

  /** An object as the server has it. */
  put(raw: Stored<T>, origin: Origin): Change<T>[] {
    const object = this.#prepare(raw);
    const key = objectKey(object.metadata);
    const base = this.base(key);
    if (origin === 'watch') this.#remember(key, object.metadata.resourceVersion);
    if (base && sameVersion(base, object)) return [];
    const own = this.#settle(key, object) && origin === 'watch';
    if (!base) return [{ type: 'added', object, origin, own }];
    if (base.metadata.uid === object.metadata.uid)
      return [{ type: 'updated', object, old: base, origin, own }];
    // Deleted and made anew while we were not looking.
    return [
      { type: 'deleted', object: base, origin, own: false },
      { type: 'added', object, origin, own },
    ];
  }

  /** The server no longer has it; `raw` is its last state. */
  remove(raw: Stored<T>, origin: Origin): Change<T>[] {
    const key = objectKey(raw.metadata);
    const base = this.base(key);
    const write = this.#own.get(key);
    if (origin === 'watch') this.#remember(key, raw.metadata.resourceVersion);
    // Of an object that we made anew under its name the server has not told yet.
    if (write && write.latest.metadata.uid !== raw.metadata.uid) write.base = undefined;
    else {
      this.#own.delete(key);
      this.#show(key, undefined);
    }
    if (!base) return [];
    const own = origin === 'watch' && (write?.awaited.has(raw.metadata.resourceVersion) ?? false);
    return [{ type: 'deleted', object: this.#prepare(raw), origin, own }];
  }

  /** The whole content as of a list that began at `startedAt` (monotonic time). */
  replace(items: ReadonlyMap<string, Stored<T>>, origin: Origin, startedAt: number): Change<T>[] {
    // A list that began after a write has seen it.
    for (const [key, write] of this.#own) if (write.at <= startedAt) this.#uncover(key);
    const changes: Change<T>[] = [];
    for (const key of this.baseKeys()) {
      const base = this.base(key);
      if (base && !items.has(key)) changes.push(...this.remove(base, origin));
    }
    for (const item of items.values()) changes.push(...this.put(item, origin));
    return changes;
  }

  /** An object as a write of ours returned it. Its event may have come before. */
  observeWrite(written: Stored<T>): void {
    const object = this.#prepare(this.#freeze ? structuredClone(written) : written);
    const key = objectKey(object.metadata);
    const version = object.metadata.resourceVersion;
    const base = this.base(key);
    if (this.#recent.has(`${key} ${version}`) || (base && sameVersion(base, object))) return;
    const before = this.#own.get(key);
    if (before && before.latest.metadata.uid === object.metadata.uid) {
      before.latest = object;
      before.awaited.add(version);
      before.at = this.#clock.monotonic();
    } else {
      this.#own.set(key, {
        latest: object,
        awaited: new Set([version]),
        base,
        at: this.#clock.monotonic(),
      });
    }
    this.#show(key, object);
  }

  /** From now on events come. */
  watchBegan(): void {
    this.#watchingSince = this.#clock.monotonic();
  }

  /** From now on none do; writes of ours wait for their events until the next watch. */
  watchEnded(): void {
    this.#watchingSince = undefined;
  }

  /** Takes in the server's word; true if it is that of a write of ours. */
  #settle(key: string, object: Stored<T>): boolean {
    const write = this.#own.get(key);
    if (!write) {
      this.#show(key, object);
      return false;
    }
    const known = write.base?.metadata.uid === write.latest.metadata.uid;
    const own = write.awaited.delete(object.metadata.resourceVersion);
    write.base = object;
    const sameObject = object.metadata.uid === write.latest.metadata.uid;
    // Another object of that name came after ours if ours was known before, otherwise before it.
    if (sameObject ? write.awaited.size === 0 : known) this.#uncover(key);
    return own;
  }

  #uncover(key: string): void {
    const write = this.#own.get(key);
    if (!write) return;
    this.#own.delete(key);
    this.#show(key, write.base);
  }

  #forgetCollapsed(): void {
    if (this.#own.size === 0 || this.#watchingSince === undefined) return;
    const now = this.#clock.monotonic();
    for (const [key, write] of this.#own)
      if (now - Math.max(write.at, this.#watchingSince) >= OWN_WRITE_PATIENCE_MS) this.#uncover(key);
  }

  #show(key: string, object: Stored<T> | undefined): void {
    const before = this.#objects.get(key);
    for (const index of this.#indexes.values()) index.update(key, before, object);
    if (object) this.#objects.set(key, object);
    else this.#objects.delete(key);
  }

  #remember(key: string, version: string): void {
    this.#recent.add(`${key} ${version}`);
    if (this.#recent.size <= RECENT_EVENTS) return;
    for (const oldest of this.#recent) {
      this.#recent.delete(oldest);
      break;
    }
  }

  #prepare(raw: Stored<T>): Stored<T> {
    const object = strippedOf(raw);
    return this.#freeze ? deepFreeze(object) : object;
  }
}

class Index<T extends KubeObject> {
  readonly #indexer: Indexer<T>;
  readonly #keys = new Map<string, Set<string>>();

  constructor(indexer: Indexer<T>) {
    this.#indexer = indexer;
  }

  keys(value: string): string[] {
    return [...(this.#keys.get(value) ?? [])];
  }

  update(key: string, before: Stored<T> | undefined, after: Stored<T> | undefined): void {
    const old = before ? this.#indexer(before) : [];
    const current = after ? this.#indexer(after) : [];
    for (const value of old) if (!current.includes(value)) this.#remove(value, key);
    for (const value of current) {
      const keys = this.#keys.get(value);
      if (keys) keys.add(key);
      else this.#keys.set(value, new Set([key]));
    }
  }

  #remove(value: string, key: string): void {
    const keys = this.#keys.get(value);
    keys?.delete(key);
    if (keys?.size === 0) this.#keys.delete(value);
  }
}

function sameVersion(a: Stored, b: Stored): boolean {
  return a.metadata.uid === b.metadata.uid && a.metadata.resourceVersion === b.metadata.resourceVersion;
}
