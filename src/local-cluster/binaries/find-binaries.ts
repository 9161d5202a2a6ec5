/**
 * Where the Kubernetes programs of the local control plane come from: the
 * table of sources, tried in order until one has them all. Each source that
 * fails is reported with its reason; only if all do is it an error.
 */
import { join } from 'node:path';
import { assetsSource } from './assets.ts';
import { buildSource } from './build.ts';
import { cacheSource } from './cache.ts';
import { downloadSource } from './download.ts';
import {
  type BinarySource,
  type FindBinariesOptions,
  type FoundPrograms,
  type KubeBinaries,
  reasonOf,
  type Search,
  type Source,
  SourceNotConfiguredError,
} from './source.ts';
import { PROGRAM_NAMES, type ProgramName } from './versions.ts';

export type { BinaryEvent, BinarySource, FindBinariesOptions, KubeBinaries } from './source.ts';
export type { ProgramName } from './versions.ts';

interface FailedSource {
  readonly source: BinarySource;
  readonly reason: string;
}

const SOURCES: readonly Source[] = [
  assetsSource('TASKFLOW_ASSETS'),
  assetsSource('KUBEBUILDER_ASSETS'),
  cacheSource,
  downloadSource,
  buildSource,
];

export class BinariesNotFoundError extends Error {
  readonly failures: readonly FailedSource[];

  constructor(failures: readonly FailedSource[]) {
    super(
      [
        `The local control plane needs ${PROGRAM_NAMES.join(', ')}, and no source has them:`,
        ...failures.map(({ source, reason }) => `  ${source}: ${reason}`),
        'One of these helps:',
        '  - install Go 1.26 or later (https://go.dev/dl/), and they are built from source',
        '  - allow network access to dl.k8s.io and github.com, and they are downloaded (Linux)',
        '  - set TASKFLOW_ASSETS to a directory that has all four',
      ].join('\n'),
    );
    this.name = 'BinariesNotFoundError';
    this.failures = failures;
  }
}

export async function findBinaries(options: FindBinariesOptions = {}): Promise<KubeBinaries> {
  const failures: FailedSource[] = [];
  const found = await firstThatHasThem(SOURCES, withDefaults(options), failures);
  if (!found) throw new BinariesNotFoundError(failures);
  return found;
}

/** What is there already, without fetching or building anything. */
export async function lookForBinaries(options: FindBinariesOptions = {}): Promise<KubeBinaries | undefined> {
  return firstThatHasThem(
    SOURCES.filter((source) => source.onlyLooks),
    withDefaults(options),
    [],
  );
}

async function firstThatHasThem(
  sources: readonly Source[],
  search: Search,
  failures: FailedSource[],
): Promise<KubeBinaries | undefined> {
  for (const source of sources) {
    search.signal.throwIfAborted();
    try {
      const found = await source.find(search);
      search.report({ type: 'found', source: source.name, dir: found.dir });
      return asBinaries(source.name, found);
    } catch (error) {
      search.signal.throwIfAborted();
      const failure = { source: source.name, reason: reasonOf(error) };
      failures.push(failure);
      if (!(error instanceof SourceNotConfiguredError)) search.report({ type: 'source-failed', ...failure });
    }
  }
  return undefined;
}

function asBinaries(source: BinarySource, { dir, version }: FoundPrograms): KubeBinaries {
  const paths: Record<ProgramName, string> = {
    etcd: join(dir, 'etcd'),
    'kube-apiserver': join(dir, 'kube-apiserver'),
    'kube-controller-manager': join(dir, 'kube-controller-manager'),
    kubectl: join(dir, 'kubectl'),
  };
  return { version, source, dir, paths };
}

function withDefaults(options: FindBinariesOptions): Search {
  return {
    env: options.env ?? process.env,
    platform: options.platform ?? process.platform,
    arch: options.arch ?? process.arch,
    signal: options.signal ?? new AbortController().signal,
    report: options.report ?? (() => undefined),
    download: options.download ?? {},
  };
}
