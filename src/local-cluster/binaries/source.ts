/** What a source of programs is: the vocabulary that its kinds share. */
import type { ProgramName } from './versions.ts';

export type BinarySource = 'TASKFLOW_ASSETS' | 'KUBEBUILDER_ASSETS' | 'cache' | 'download' | 'build';

export interface KubeBinaries {
  /** Version of Kubernetes, with the leading `v`. */
  readonly version: string;
  readonly source: BinarySource;
  readonly dir: string;
  readonly paths: Readonly<Record<ProgramName, string>>;
}

/** What happens on the way; every text is one line, ready to be shown. */
export type BinaryEvent =
  | { readonly type: 'source-failed'; readonly source: BinarySource; readonly reason: string }
  | { readonly type: 'progress'; readonly source: 'download' | 'build'; readonly message: string }
  | { readonly type: 'found'; readonly source: BinarySource; readonly dir: string };

export interface FindBinariesOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly platform?: NodeJS.Platform;
  readonly arch?: string;
  readonly signal?: AbortSignal;
  readonly report?: (event: BinaryEvent) => void;
  readonly download?: DownloadOptions;
}

interface DownloadOptions {
  /** Where releases of Kubernetes are, up to and without `/v1.2.3/bin/…`. */
  readonly kubernetesBase?: string;
  /** Where releases of etcd are, up to and without `/v1.2.3/etcd-…`. */
  readonly etcdBase?: string;
  readonly connectTimeoutMs?: number;
}

/** The options of one search with every default filled in. */
export type Search = Required<FindBinariesOptions>;

export interface FoundPrograms {
  readonly dir: string;
  readonly version: string;
}

export interface Source {
  readonly name: BinarySource;
  /** Whether it only looks, without fetching or building. */
  readonly onlyLooks: boolean;
  /** Rejects with SourceFailedError where it cannot give the programs. */
  find(search: Search): Promise<FoundPrograms>;
}

export class SourceFailedError extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = new.target.name;
  }
}

/** The user did not ask for this source: named in the final error, but not worth a line of its own. */
export class SourceNotConfiguredError extends SourceFailedError {}

/** Any error as one line; the innermost cause is what tells the user something. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return oneLine(String(error));
  if (error.message === '' && error.cause !== undefined) return reasonOf(error.cause);
  return oneLine(error.message || error.name);
}

function oneLine(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' / ');
}
