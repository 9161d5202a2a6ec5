/** What a story of the demo is: adding one is adding a file to demo/stories/. */
import type { Cluster } from '../src/local-cluster/cluster.ts';

export interface Story {
  /** `kubectl`-sized: shown as a heading. */
  readonly title: string;
  /** How many clusters it plays on; default 1. */
  readonly clusters?: number;
  readonly tell: (stage: Stage) => Promise<void>;
}

export interface Stage {
  readonly clusters: readonly [Cluster, ...Cluster[]];
  /** Aborted when the viewer has seen enough (Ctrl-C). */
  readonly signal: AbortSignal;
  /** A sentence about what comes next. */
  readonly say: (text: string) => void;
  /** Runs kubectl as a user would: the command is shown, its output streams as it comes. Throws if it fails. */
  readonly kubectl: (args: readonly string[], stdin?: string) => Promise<void>;
  /** The same for our own command. */
  readonly taskflow: (args: readonly string[]) => Promise<void>;
}
