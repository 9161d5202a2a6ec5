/**
 * The official release files, fetched all at once into the cache. The first
 * one that fails ends the others: a set with a gap is worth nothing, and on a
 * machine without network the user waits for one refusal, not for four.
 */
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Dispatcher, EnvHttpProxyAgent, interceptors } from 'undici';
import { fillCache, type Workspace } from './cache.ts';
import { fetchChecksum, type FetchContext, fetchFile } from './checksummed-file.ts';
import { type FoundPrograms, reasonOf, type Search, type Source, SourceFailedError } from './source.ts';
import { ETCD_VERSION, KUBERNETES_VERSION, PROGRAM_NAMES } from './versions.ts';

const KUBERNETES_BASE = 'https://dl.k8s.io/release';
const ETCD_BASE = 'https://github.com/etcd-io/etcd/releases/download';
const CONNECT_TIMEOUT_MS = 3_000;
const MAX_REDIRECTIONS = 5;
const REPORT_EVERY_MS = 1_000;
/** Node's names of processors, as release files call them. */
const RELEASE_ARCHITECTURES: Readonly<Record<string, string>> = {
  x64: 'amd64',
  arm64: 'arm64',
  ppc64: 'ppc64le',
  s390x: 's390x',
};

const run = promisify(execFile);

export const downloadSource: Source = {
  name: 'download',
  onlyLooks: false,
  async find(search: Search): Promise<FoundPrograms> {
    const arch = releaseArchitecture(search);
    return fillCache(search, (workspace) => downloadPrograms(workspace, arch, search));
  },
};

function releaseArchitecture({ platform, arch }: Search): string {
  if (platform === 'darwin') {
    throw new SourceFailedError(
      'Kubernetes publishes no server programs for macOS; building them with Go is the way there',
    );
  }
  const released = platform === 'linux' ? RELEASE_ARCHITECTURES[arch] : undefined;
  if (released === undefined) {
    throw new SourceFailedError(`Kubernetes publishes no server programs for ${platform} on ${arch}`);
  }
  return released;
}

async function downloadPrograms(workspace: Workspace, arch: string, search: Search): Promise<void> {
  const firstFailure = new AbortController();
  const proxies = proxyAgent(search);
  const context: FetchContext = {
    dispatcher: proxies.compose(interceptors.redirect({ maxRedirections: MAX_REDIRECTIONS })),
    signal: AbortSignal.any([search.signal, firstFailure.signal]),
  };
  // undici looks at the signal of a request only once it has a connection; this ends the waiting for one.
  context.signal.addEventListener('abort', () => void proxies.destroy(), { once: true });
  const downloads = PROGRAM_NAMES.map((name) =>
    name === 'etcd'
      ? downloadEtcd(workspace, arch, search, context)
      : downloadKubernetesProgram(name, workspace, arch, search, context),
  );
  try {
    // All settle before the workspace goes away under them.
    await Promise.all(
      downloads.map((download) => download.catch((error: unknown) => firstFailure.abort(error))),
    );
  } finally {
    await proxies.destroy();
  }
  search.signal.throwIfAborted();
  firstFailure.signal.throwIfAborted();
}

async function downloadKubernetesProgram(
  name: string,
  { programs }: Workspace,
  arch: string,
  search: Search,
  context: FetchContext,
): Promise<void> {
  const base = search.download.kubernetesBase ?? KUBERNETES_BASE;
  const url = `${base}/${KUBERNETES_VERSION}/bin/linux/${arch}/${name}`;
  const sha256 = await fetchChecksum(`${url}.sha256`, undefined, context);
  await fetchFile({ url, sha256, path: join(programs, name), onBytes: reportBytes(name, search) }, context);
}

async function downloadEtcd(
  { programs, scratch }: Workspace,
  arch: string,
  search: Search,
  context: FetchContext,
): Promise<void> {
  const release = `${search.download.etcdBase ?? ETCD_BASE}/${ETCD_VERSION}`;
  const folder = `etcd-${ETCD_VERSION}-linux-${arch}`;
  const fileName = `${folder}.tar.gz`;
  const archive = join(scratch, fileName);
  const sha256 = await fetchChecksum(`${release}/SHA256SUMS`, fileName, context);
  const onBytes = reportBytes('etcd', search);
  await fetchFile({ url: `${release}/${fileName}`, sha256, path: archive, onBytes }, context);
  // -o: for root, tar would otherwise give the file to the user id of etcd's build machine.
  const args = ['-xzof', archive, '-C', programs, '--strip-components=1', `${folder}/etcd`];
  await run('tar', args, { env: search.env, signal: context.signal }).catch((error: unknown) => {
    throw new SourceFailedError(`cannot unpack ${fileName}: ${reasonOf(error)}`, { cause: error });
  });
  await rm(archive);
}

/** Honours the proxy variables: many networks have no other way out. */
function proxyAgent({ env, download }: Search): Dispatcher {
  const timeout = download.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
  return new EnvHttpProxyAgent({
    // Empty, not undefined: undefined would read the variables of this process instead of `env`.
    httpProxy: env['http_proxy'] ?? env['HTTP_PROXY'] ?? '',
    httpsProxy: env['https_proxy'] ?? env['HTTPS_PROXY'] ?? '',
    noProxy: env['no_proxy'] ?? env['NO_PROXY'] ?? '',
    connect: { timeout },
    proxyTls: { timeout },
    requestTls: { timeout },
  });
}

function reportBytes(
  name: string,
  { report }: Search,
): (received: number, total: number | undefined) => void {
  let reportedAt = Date.now();
  return (received, total) => {
    if (received !== total && Date.now() - reportedAt < REPORT_EVERY_MS) return;
    reportedAt = Date.now();
    const amount =
      total === undefined ? megabytes(received) : `${megabytes(received)} of ${megabytes(total)}`;
    report({ type: 'progress', source: 'download', message: `${name} ${amount} MB` });
  };
}

function megabytes(bytes: number): string {
  return String(Math.round(bytes / 1_000_000));
}
