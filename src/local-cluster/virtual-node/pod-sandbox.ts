/**
 * What the containers of one Pod share: a directory, an address, volumes. And
 * what each of them is started with: environment, command line, directory.
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { configMaps, secrets } from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject, ResourceType } from '../../kube/resource-type.ts';
import type { ProcessLaunch } from './container-process.ts';
import type { NodeCapacity } from './downward-api.ts';
import {
  buildEnvironment,
  commandLine,
  type Environment,
  environmentReferences,
  type EnvironmentSources,
} from './environment.ts';
import { mountEnvironment, type MountedPath, mountsOf, translatePath } from './mounts.ts';
import type { ObjectReferences } from './object-references.ts';
import { HOST_ADDRESS, type PodAddresses } from './pod-addresses.ts';
import type { Container, StoredPod } from './pod-spec.ts';
import { type MountedVolumes, mountVolumes } from './volumes.ts';

export interface SandboxContext {
  readonly client: KubeClient;
  readonly references: ObjectReferences;
  readonly addresses: PodAddresses;
  readonly node: NodeCapacity;
  /** The directories of all Pods. */
  readonly podsDir: string;
  readonly apiServer: { readonly host: string; readonly port: number; readonly caPem: string };
  readonly signal: AbortSignal;
}

/** The spec gives nothing to run; no waiting will change that. */
export class NoCommand extends Error {}

/** All that a container gets of our own environment. */
const INHERITED = ['PATH', 'LANG', 'LC_ALL', 'TZ'];
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';

export class PodSandbox {
  readonly podIP: string;
  readonly hostIP = HOST_ADDRESS;
  readonly #context: SandboxContext;
  readonly #uid: string;
  readonly #dir: string;
  #volumes: MountedVolumes | undefined;

  constructor(context: SandboxContext, pod: StoredPod) {
    this.#context = context;
    this.#uid = pod.metadata.uid;
    this.#dir = join(context.podsDir, this.#uid);
    this.podIP = pod.spec?.hostNetwork
      ? HOST_ADDRESS
      : context.addresses.allocate(this.#uid, pod.status?.podIP);
  }

  get volumes(): MountedVolumes | undefined {
    return this.#volumes;
  }

  async mount(pod: StoredPod): Promise<MountedVolumes> {
    const { client, references, node, signal } = this.#context;
    this.#volumes = await mountVolumes({
      client,
      references,
      node,
      signal,
      pod,
      dir: join(this.#dir, 'volumes'),
      addresses: this,
    });
    return this.#volumes;
  }

  logDir(container: string): string {
    return join(this.#dir, 'logs', container);
  }

  /** Everything a process is started with; its own directory is made empty, as a fresh container's is. */
  async launch(pod: StoredPod, container: Container): Promise<ProcessLaunch> {
    const dir = join(this.#dir, 'containers', container.name);
    const own = {
      home: join(dir, 'home'),
      tmp: join(dir, 'tmp'),
      terminationLog: join(dir, 'termination-log'),
    };
    const base = {
      ...this.#baseEnvironment(pod),
      HOME: own.home,
      TMPDIR: own.tmp,
      TASKFLOW_TERMINATION_LOG: own.terminationLog,
    };
    const sources = await this.#sources(pod, container);
    const mounts = mountsOf(
      container,
      this.#volumes?.paths ?? new Map(),
      buildEnvironment(container, base, sources),
    );
    const told = { ...base, ...mountEnvironment(mounts), ...kubeconfigEnvironment(dir, mounts) };
    const env = buildEnvironment(container, told, sources);
    const [command, ...args] = commandLine(container, env);
    if (command === undefined)
      throw new NoCommand('no command specified: an image "process" needs the command in the spec');
    await removeAll(dir);
    await Promise.all([own.home, own.tmp].map((path) => mkdir(path, { recursive: true, mode: 0o700 })));
    await this.#makeParts(mounts);
    await this.#writeKubeconfig(told, pod);
    return {
      name: `${pod.metadata.namespace}/${pod.metadata.name}/${container.name}`,
      argv: [command, ...args],
      env,
      cwd: this.#workingDirectory(container, mounts, own.home),
      terminationLog: own.terminationLog,
      logIsMessageOnError: container.terminationMessagePolicy === 'FallbackToLogsOnError',
    };
  }

  /** What a Pod that has ended leaves are its logs; its files, secrets among them, go. */
  async clear(): Promise<void> {
    await Promise.all(['volumes', 'containers'].map((part) => removeAll(join(this.#dir, part))));
  }

  async destroy(): Promise<void> {
    this.#context.addresses.release(this.#uid);
    await removeAll(this.#dir);
  }

  #baseEnvironment(pod: StoredPod): Environment {
    const { host, port } = this.#context.apiServer;
    const inherited = INHERITED.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    return {
      PATH: DEFAULT_PATH,
      ...Object.fromEntries(inherited),
      HOSTNAME: pod.spec?.hostname ?? pod.metadata.name,
      KUBERNETES_SERVICE_HOST: host,
      KUBERNETES_SERVICE_PORT: String(port),
      KUBERNETES_SERVICE_PORT_HTTPS: String(port),
    };
  }

  async #sources(pod: StoredPod, container: Container): Promise<EnvironmentSources> {
    const names = environmentReferences(container);
    const { references, signal, node } = this.#context;
    const read = async <T extends KubeObject>(
      type: ResourceType<T>,
      wanted: Set<string>,
    ): Promise<Map<string, T | undefined>> =>
      new Map(
        await Promise.all(
          [...wanted].map(
            async (name) =>
              [
                name,
                await references.find(type, { name, namespace: pod.metadata.namespace }, signal),
              ] as const,
          ),
        ),
      );
    const [foundMaps, foundSecrets] = await Promise.all([
      read(configMaps, names.configMaps),
      read(secrets, names.secrets),
    ]);
    return { pod, addresses: this, node, configMaps: foundMaps, secrets: foundSecrets };
  }

  #workingDirectory({ workingDir }: Container, mounts: readonly MountedPath[], home: string): string {
    return (workingDir !== undefined && translatePath(workingDir, mounts)) || home;
  }

  /** A part of a volume that does not exist yet is made as a directory, as the kubelet does. */
  async #makeParts(mounts: readonly MountedPath[]): Promise<void> {
    const made = mounts
      .filter(({ isPart }) => isPart)
      .map(async ({ path }) => {
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'EEXIST') throw error;
        });
      });
    await Promise.all(made);
  }

  /** Clients look for the service account at a fixed path, which a process here does not have; a kubeconfig does. */
  async #writeKubeconfig(env: Environment, pod: StoredPod): Promise<void> {
    const { KUBECONFIG: path, TASKFLOW_SERVICE_ACCOUNT_DIR: account } = env;
    if (path === undefined || account === undefined) return;
    const { host, port, caPem } = this.#context.apiServer;
    const name = 'local';
    const cluster = {
      server: `https://${host}:${port}`,
      'certificate-authority-data': Buffer.from(caPem).toString('base64'),
    };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster }],
      users: [{ name, user: { tokenFile: join(account, 'token') } }],
      contexts: [{ name, context: { cluster: name, user: name, namespace: pod.metadata.namespace } }],
      'current-context': name,
    };
    await writeFile(path, JSON.stringify(config, undefined, 2), { mode: 0o600 });
  }
}

/** Directories of Pods that went while nobody looked. */
export async function removeOrphans(podsDir: string, isKnown: (uid: string) => boolean): Promise<void> {
  const orphans = (await readdir(podsDir)).filter((uid) => !isKnown(uid));
  await Promise.all(orphans.map((uid) => removeAll(join(podsDir, uid))));
}

async function removeAll(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3 });
}

function kubeconfigEnvironment(dir: string, mounts: readonly MountedPath[]): Environment {
  return 'TASKFLOW_SERVICE_ACCOUNT_DIR' in mountEnvironment(mounts)
    ? { KUBECONFIG: join(dir, 'kubeconfig') }
    : {};
}
