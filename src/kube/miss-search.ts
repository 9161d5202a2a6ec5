/**
 * Looks for changes that a watch missed, while the watch goes on: a consistent
 * list is compared with the store. A difference alone proves nothing, since
 * the event may be on its way; it counts if the key heard of no event from the
 * start of the list until some time after its end.
 */
import type { KubeClient, ListOptions } from './client.ts';
import type { Clock } from './clock.ts';
import type { ObjectStore } from './object-store.ts';
import { pagesOf } from './pages.ts';
import { type KubeObject, objectKey, type ResourceType, type Stored } from './resource-type.ts';

export interface MissSearchOptions<T extends KubeObject> {
  readonly client: KubeClient;
  readonly type: ResourceType<T>;
  readonly scope: Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>;
  readonly store: ObjectStore<T>;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly signal: AbortSignal;
}

export class MissSearch<T extends KubeObject> {
  readonly #options: MissSearchOptions<T>;
  readonly #touched = new Set<string>();
  #abandoned = false;

  constructor(options: MissSearchOptions<T>) {
    this.#options = options;
  }

  /** An event of this object came. */
  touch(key: string): void {
    this.#touched.add(key);
  }

  /** A new list replaced the store. */
  abandon(): void {
    this.#abandoned = true;
  }

  /** What the server has in place of what the store has; undefined where it has nothing. */
  async run(): Promise<ReadonlyMap<string, Stored<T> | undefined>> {
    const { clock, graceMs, signal } = this.#options;
    const differing = await this.#differing();
    if (differing.size > 0) await clock.sleep(graceMs, signal);
    if (this.#abandoned || signal.aborted) return new Map();
    return new Map([...differing].filter(([key]) => !this.#touched.has(key)));
  }

  async #differing(): Promise<Map<string, Stored<T> | undefined>> {
    const { client, type, scope, store, signal } = this.#options;
    const differing = new Map<string, Stored<T> | undefined>();
    const seen = new Set<string>();
    const compare = (item: Stored<T>): void => {
      const key = objectKey(item.metadata);
      seen.add(key);
      if (store.base(key)?.metadata.resourceVersion !== item.metadata.resourceVersion)
        differing.set(key, item);
    };
    const pages = pagesOf({ ...scope, signal }, (page, first) => {
      if (first) {
        differing.clear();
        seen.clear();
      }
      return client.listEach(type, page, compare);
    });
    for await (const _ of pages) if (signal.aborted) break;
    for (const key of store.baseKeys()) if (!seen.has(key)) differing.set(key, undefined);
    return differing;
  }
}
