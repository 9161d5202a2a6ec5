/** What handlers hear of. */
import type { KubeObject, Stored } from './resource-type.ts';

/**
 * Where a change comes from. `initial`: the first list, or what was there when
 * a handler subscribed. `list`: the difference after a gap in the watch.
 * `relist`: the watch had missed it. `resync`: nothing changed, look again.
 */
export type Origin = 'initial' | 'watch' | 'list' | 'relist' | 'resync';

export type Change<T extends KubeObject> = (
  | { readonly type: 'added'; readonly object: Stored<T> }
  | { readonly type: 'updated'; readonly object: Stored<T>; readonly old: Stored<T> }
  | { readonly type: 'deleted'; readonly object: Stored<T> }
) & {
  readonly origin: Origin;
  /** Exactly what a write of ours did, and nothing of anybody else: no reason to act. */
  readonly own: boolean;
};
