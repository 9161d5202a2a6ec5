/**
 * Ways to a cluster: a kubeconfig, or the ServiceAccount of the Pod we run in.
 * Kubeconfigs are read by the official client, with all its kinds of
 * credentials; it is loaded only then, since it costs 85 MB and a second,
 * which an operator inside of its cluster need not spend. What it does not
 * read is added here: `tokenFile`, the groups to impersonate, and what exec
 * plugins are told about the cluster.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { load } from 'js-yaml';
import { type Clock, systemClock } from './clock.ts';
import type { ConnectionOptions } from './connection.ts';
import {
  CachedCredentials,
  type Credentials,
  type Identity,
  tokenFileCredentials,
  tokenIdentity,
} from './credentials.ts';
import type { Impersonation } from './transport.ts';

export interface KubeconfigOptions {
  /** This file and no other. */
  readonly path?: string;
  /** Default: the file's current context. */
  readonly context?: string;
  /** Default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly clock?: Clock;
  /** Where a Pod finds its ServiceAccount; another place only in tests. */
  readonly serviceAccountDir?: string;
}

/** A connection and what the kubeconfig says beside it. */
export interface ClusterAccess extends ConnectionOptions {
  /** For objects that name none. */
  readonly namespace: string;
  /** In whose name to act; for the options of KubeClient. */
  readonly impersonate?: Impersonation;
  /** For messages: the file, or `in-cluster`. */
  readonly source: string;
}

const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * In this order: `path`, the files of KUBECONFIG, the Pod's ServiceAccount,
 * `~/.kube/config`.
 */
export async function connectionFromKubeconfig(options: KubeconfigOptions = {}): Promise<ClusterAccess> {
  const env = options.env ?? process.env;
  if (options.path !== undefined) return fromFiles([options.path], options);
  const named = (env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  if (named.length > 0) {
    // As kubectl does: a list may name files that are not there.
    const present = named.filter((file) => existsSync(file));
    return fromFiles(present.length > 0 ? present : named.slice(0, 1), options);
  }
  const inCluster = await inClusterConnection(options);
  if (inCluster) return inCluster;
  const usual = join(env['HOME'] ?? homedir(), '.kube', 'config');
  if (existsSync(usual)) return fromFiles([usual], options);
  throw new Error(
    `no cluster to talk to: KUBECONFIG is not set, ${usual} is not there, and this is no Pod of a cluster`,
  );
}

/** Undefined outside of a cluster. */
export async function inClusterConnection({
  env = process.env,
  clock = systemClock,
  serviceAccountDir = SERVICE_ACCOUNT_DIR,
}: KubeconfigOptions = {}): Promise<ClusterAccess | undefined> {
  const host = env['KUBERNETES_SERVICE_HOST'];
  const tokenFile = join(serviceAccountDir, 'token');
  if (host === undefined || host === '' || !existsSync(tokenFile)) return undefined;
  const read = (name: string): Promise<string> => readFile(join(serviceAccountDir, name), 'utf8');
  const namespace = await read('namespace').catch(() => 'default');
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${env['KUBERNETES_SERVICE_PORT'] ?? '443'}`,
    ca: await read('ca.crt'),
    tokenFile,
    clock,
    namespace: namespace.trim(),
    source: 'in-cluster',
  };
}

async function fromFiles(
  files: readonly string[],
  { context, clock = systemClock }: KubeconfigOptions,
): Promise<ClusterAccess> {
  const chosen = await readChoice(files, context);
  const { cluster, user } = chosen;
  if (cluster.proxyUrl?.startsWith('socks'))
    throw new Error(
      `${chosen.source}: cluster "${cluster.name}" is behind a SOCKS proxy, which is not supported`,
    );
  return {
    server: cluster.server,
    ca: await pemOf(cluster.caFile, cluster.caData),
    credentials: credentialsOf(chosen, () => readChoice(files, context), clock),
    ...(cluster.tlsServerName && { tlsServerName: cluster.tlsServerName }),
    ...(cluster.skipTLSVerify && { insecureSkipTlsVerify: true }),
    ...(cluster.proxyUrl && { proxyUrl: cluster.proxyUrl }),
    ...(user.impersonate && { impersonate: user.impersonate }),
    clock,
    namespace: chosen.namespace,
    source: chosen.source,
  };
}

/** The cluster and user of one context. */
interface Choice {
  readonly config: KubeConfig;
  readonly cluster: NonNullable<ReturnType<KubeConfig['getCurrentCluster']>>;
  readonly user: RawUser;
  readonly namespace: string;
  readonly source: string;
}

/** What the official client leaves aside. */
interface RawUser {
  readonly tokenFile?: string;
  readonly impersonate?: Impersonation;
}

async function readChoice(files: readonly string[], context: string | undefined): Promise<Choice> {
  const parts = await Promise.all(files.map(readPart));
  const source = files.join(delimiter);
  const config = await mergedConfig(parts);
  if (context !== undefined) config.setCurrentContext(context);
  const name = config.getCurrentContext() || undefined;
  const chosen = config.getContexts().find((candidate) => candidate.name === name);
  if (!chosen) {
    const known = config
      .getContexts()
      .map((candidate) => candidate.name)
      .toSorted();
    throw new Error(
      `${source}: ${name === undefined ? 'no current context is set' : `no context "${name}"`}; there are: ${known.join(', ') || 'none'}`,
    );
  }
  const cluster = config.getCurrentCluster();
  if (!cluster)
    throw new Error(
      `${source}: context "${chosen.name}" names cluster "${chosen.cluster}", which is not there`,
    );
  const raw = parts.map(({ users }) => users.get(chosen.user)).find((user) => user !== undefined) ?? {};
  return { config, cluster, user: raw, namespace: chosen.namespace ?? 'default', source };
}

interface Part {
  readonly config: KubeConfig;
  readonly users: ReadonlyMap<string, RawUser>;
}

interface RawUserEntry {
  readonly name?: string;
  readonly user?: {
    readonly token?: string;
    readonly tokenFile?: string;
    readonly as?: string;
    readonly 'as-uid'?: string;
    readonly 'as-groups'?: readonly string[];
    readonly 'as-user-extra'?: Readonly<Record<string, readonly string[]>>;
  };
}

async function readPart(file: string): Promise<Part> {
  const { KubeConfig: Config } = await import('@kubernetes/client-node');
  const config = new Config();
  try {
    config.loadFromFile(file);
    const raw = load(await readFile(file, 'utf8')) as { users?: readonly RawUserEntry[] } | undefined;
    const users = (raw?.users ?? []).map(
      (entry) => [entry.name ?? '', rawUser(entry, dirname(file))] as const,
    );
    return { config: withExecInfo(config, dirname(file)), users: new Map(users) };
  } catch (error) {
    throw new Error(
      `kubeconfig ${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    );
  }
}

function rawUser({ user = {} }: RawUserEntry, dir: string): RawUser {
  const { token, tokenFile, as, 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra } = user;
  return {
    // A token wins over a file, as for kubectl.
    ...(tokenFile !== undefined && token === undefined && { tokenFile: resolve(dir, tokenFile) }),
    ...(as !== undefined && {
      impersonate: {
        user: as,
        ...(uid !== undefined && { uid }),
        ...(groups && { groups }),
        ...(extra && { extra }),
      },
    }),
  };
}

interface ExecConfig {
  readonly apiVersion?: string;
  readonly command?: string;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
}

/** Exec plugins are told that nobody sits at a terminal; a relative one is beside the file. */
function withExecInfo(config: KubeConfig, dir: string): KubeConfig {
  config.users = config.users.map((user) => {
    const exec = user.exec as ExecConfig | null | undefined;
    if (!exec?.command) return user;
    const info = {
      apiVersion: exec.apiVersion ?? 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      spec: { interactive: false },
    };
    const relative = exec.command.includes('/') && !isAbsolute(exec.command);
    return {
      ...user,
      exec: {
        ...exec,
        command: relative ? resolve(dir, exec.command) : exec.command,
        env: [...(exec.env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }],
      },
    };
  });
  return config;
}

/** Of entries with the same name the first file's counts, as for kubectl. */
async function mergedConfig(parts: readonly Part[]): Promise<KubeConfig> {
  const { KubeConfig: Config } = await import('@kubernetes/client-node');
  const first = <Entry extends { readonly name: string }>(entries: readonly Entry[]): Entry[] => [
    ...new Map(entries.toReversed().map((entry) => [entry.name, entry])).values(),
  ];
  const config = new Config();
  config.loadFromOptions({
    clusters: first(parts.flatMap((part) => part.config.clusters)),
    users: first(parts.flatMap((part) => part.config.users)),
    contexts: first(parts.flatMap((part) => part.config.contexts)),
    currentContext: parts
      .map((part) => part.config.currentContext)
      .find((name) => name !== undefined && name !== ''),
  });
  return config;
}

function credentialsOf(first: Choice, reread: () => Promise<Choice>, clock: Clock): Credentials {
  if (first.user.tokenFile !== undefined) return tokenFileCredentials(first.user.tokenFile, clock);
  let choice = first;
  return new CachedCredentials({
    clock,
    async load(fresh) {
      // A new reading forgets what the client has cached: tokens of exec plugins among it.
      if (fresh) choice = await reread();
      return identityOf(choice.config);
    },
  });
}

async function identityOf(config: KubeConfig): Promise<Identity> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const headers = options.headers as Record<string, string | undefined> | undefined;
  const token = /^Bearer (.+)$/s.exec(headers?.['Authorization'] ?? '')?.[1]?.trim();
  const basic = options.auth == null ? undefined : `Basic ${Buffer.from(options.auth).toString('base64')}`;
  const identity =
    token === undefined
      ? { headers: basic === undefined ? {} : { authorization: basic } }
      : tokenIdentity(token);
  // Text from plugins, bytes from files.
  const [certPem, keyPem] = [options.cert, options.key].map((part) =>
    typeof part === 'string' || Buffer.isBuffer(part) ? part.toString() : undefined,
  );
  return certPem === undefined || keyPem === undefined
    ? identity
    : { ...identity, clientCertificate: { certPem, keyPem } };
}

async function pemOf(file: string | undefined, data: string | undefined): Promise<string> {
  if (file) return readFile(file, 'utf8');
  return data ? Buffer.from(data, 'base64').toString('utf8') : '';
}
