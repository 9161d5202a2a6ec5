/**
 * The volumes of one Pod, a directory each. Those made from objects are
 * written anew on every call, file by file with a rename, so that a process
 * never reads half a file; the caller repeats it when an object changes or a
 * token grows old.
 */
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import {
  configMaps,
  persistentVolumeClaims,
  persistentVolumes,
  secrets,
  serviceAccounts,
} from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject, ObjectRef, ResourceType } from '../../kube/resource-type.ts';
import type { NodeCapacity, PodAddressFacts } from './downward-api.ts';
import { AwaitsObject, type ObjectReferences } from './object-references.ts';
import { containersOf, isProcessImage, specOf, type StoredPod, type Volume } from './pod-spec.ts';
import { configMapFiles, downwardFiles, secretFiles, tokenFile, type VolumeFile } from './volume-files.ts';

export interface VolumeContext {
  readonly client: KubeClient;
  readonly references: ObjectReferences;
  /** Where the Pod's volumes are made. */
  readonly dir: string;
  readonly pod: StoredPod;
  readonly addresses: PodAddressFacts;
  readonly node: NodeCapacity;
  readonly signal: AbortSignal;
}

export interface ShownObject {
  readonly type: ResourceType;
  readonly ref: ObjectRef;
  /** Undefined where an optional object does not exist. */
  readonly resourceVersion: string | undefined;
}

export interface MountedVolumes {
  /** By volume name. */
  readonly paths: ReadonlyMap<string, string>;
  /** What the volumes show; they are to be mounted again when one of these changes. */
  readonly shows: readonly ShownObject[];
  /** When a token should be renewed (epoch milliseconds). */
  readonly renewAt: number | undefined;
}

/** Every namespace has it, and it never changes while the cluster lives: not worth a watch per namespace. */
const CLUSTER_CA = 'kube-root-ca.crt';
const DEFAULT_TOKEN_SECONDS = 3600;
/** The kubelet renews at 80 % of a token's life. */
const TOKEN_LIFE_USED = 0.8;

export async function mountVolumes(context: VolumeContext): Promise<MountedVolumes> {
  const mount = new Mount(context);
  const paths = new Map<string, string>();
  for (const volume of specOf(context.pod).volumes ?? []) {
    try {
      paths.set(volume.name, await mount.volume(volume));
    } catch (error) {
      throw inVolume(volume.name, error);
    }
  }
  return { paths, shows: mount.shows, renewAt: mount.renewAt };
}

class Mount {
  readonly shows: ShownObject[] = [];
  renewAt: number | undefined;
  readonly #context: VolumeContext;

  constructor(context: VolumeContext) {
    this.#context = context;
  }

  async volume(volume: Volume): Promise<string> {
    const { pod } = this.#context;
    const dir = join(this.#context.dir, volume.name);
    if (volume.hostPath) return hostDirectory(volume.hostPath);
    if (volume.persistentVolumeClaim) return this.#claimed(volume.persistentVolumeClaim.claimName);
    if (volume.ephemeral) return this.#claimed(`${pod.metadata.name}-${volume.name}`);
    if (volume.emptyDir) await mkdir(dir, { recursive: true, mode: 0o700 });
    else await writeFiles(dir, await this.#files(volume));
    return dir;
  }

  #files(volume: Volume): Promise<VolumeFile[]> {
    const { configMap, secret, downwardAPI, projected } = volume;
    const defaultMode = configMap?.defaultMode ?? secret?.defaultMode ?? projected?.defaultMode;
    if (configMap) return this.#source({ configMap }, defaultMode);
    if (secret) return this.#source({ secret: { ...secret, name: secret.secretName ?? '' } }, defaultMode);
    if (downwardAPI) return this.#source({ downwardAPI }, downwardAPI.defaultMode);
    if (projected) return this.#projected(projected.sources ?? [], defaultMode);
    const kind = Object.keys(volume).find((key) => key !== 'name') ?? 'unknown';
    throw new Error(`volumes of type ${kind} are not supported by the virtual node`);
  }

  async #projected(sources: readonly Projection[], defaultMode: number | undefined): Promise<VolumeFile[]> {
    const files = await Promise.all(sources.map((source) => this.#source(source, defaultMode)));
    return files.flat();
  }

  async #source(source: Projection, defaultMode: number | undefined): Promise<VolumeFile[]> {
    const { pod, addresses, node } = this.#context;
    if (source.configMap) {
      const name = source.configMap.name ?? '';
      const selection = { ...source.configMap, defaultMode };
      return configMapFiles(pod, name, await this.#shown(configMaps, name), selection);
    }
    if (source.secret) {
      const name = source.secret.name ?? '';
      return secretFiles(pod, name, await this.#shown(secrets, name), { ...source.secret, defaultMode });
    }
    if (source.downwardAPI)
      return downwardFiles(pod, source.downwardAPI.items ?? [], { addresses, node, defaultMode });
    // Nobody reads a token where containers are only pretended to run.
    if (source.serviceAccountToken)
      return runsProcess(pod) ? [await this.#token(source.serviceAccountToken)] : [];
    throw new Error(
      `projected sources of type ${Object.keys(source).join(', ')} are not supported by the virtual node`,
    );
  }

  async #shown<T extends KubeObject>(type: ResourceType<T>, name: string): Promise<T | undefined> {
    const { pod, references, signal } = this.#context;
    const ref = { name, namespace: pod.metadata.namespace };
    const object = await references.find(type, ref, signal);
    if (name !== CLUSTER_CA)
      this.shows.push({ type, ref, resourceVersion: object?.metadata.resourceVersion });
    return object;
  }

  async #token(wanted: NonNullable<Projection['serviceAccountToken']>): Promise<VolumeFile> {
    const { client, pod, signal } = this.#context;
    const { name, namespace, uid } = pod.metadata;
    const expirationSeconds = wanted.expirationSeconds ?? DEFAULT_TOKEN_SECONDS;
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        audiences: wanted.audience === undefined || wanted.audience === '' ? [] : [wanted.audience],
        expirationSeconds,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
      },
    };
    const account = { name: pod.spec?.serviceAccountName ?? 'default', namespace };
    const answer = await client.createSub<KubeObject, { status: { token: string } }>(
      serviceAccounts,
      request,
      {
        ref: account,
        subresource: 'token',
        signal,
      },
    );
    const renewAt = Date.now() + expirationSeconds * 1000 * TOKEN_LIFE_USED;
    this.renewAt = Math.min(this.renewAt ?? Infinity, renewAt);
    return tokenFile(wanted.path, answer.status.token);
  }

  /** The directory behind a claim, which must be bound. */
  async #claimed(name: string): Promise<string> {
    const { pod, references, signal } = this.#context;
    const ref = { name, namespace: pod.metadata.namespace };
    const claim = await references.find(persistentVolumeClaims, ref, signal);
    if (!claim)
      throw new AwaitsObject(`persistentvolumeclaim "${name}" not found`, persistentVolumeClaims, ref);
    const volumeName = claim.spec?.volumeName;
    if (claim.status?.phase !== 'Bound' || volumeName === undefined)
      throw new AwaitsObject(`persistentvolumeclaim "${name}" is not bound yet`, persistentVolumeClaims, ref);
    const volumeRef = { name: volumeName };
    const volume = await references.find(persistentVolumes, volumeRef, signal);
    const path = volume?.spec?.hostPath?.path ?? volume?.spec?.local?.path;
    if (path === undefined)
      throw new AwaitsObject(
        `persistentvolume "${volumeName}" has no directory on this machine`,
        persistentVolumes,
        volumeRef,
      );
    await mkdir(path, { recursive: true, mode: 0o700 });
    return path;
  }
}

type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number];

function runsProcess(pod: StoredPod): boolean {
  return containersOf(specOf(pod)).some(({ container }) => isProcessImage(container.image));
}

/** The path itself, made where its type says so. */
async function hostDirectory({
  path,
  type,
}: {
  readonly path: string;
  readonly type?: string;
}): Promise<string> {
  if (type === 'DirectoryOrCreate') await mkdir(path, { recursive: true });
  if (type === 'FileOrCreate') {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, '', { flag: 'a' });
  }
  return path;
}

async function writeFiles(dir: string, files: readonly VolumeFile[]): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  for (const { path, content, mode } of files) {
    const target = join(dir, path);
    if (relative(dir, target).startsWith('..')) throw new Error(`file "${path}" is outside its volume`);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    const temporary = `${target}.${process.pid}.new`;
    await writeFile(temporary, content, { mode });
    await rename(temporary, target);
  }
  const wanted = new Set(files.map(({ path }) => join(dir, path)));
  const present = await readdir(dir, { recursive: true, withFileTypes: true });
  const stale = present.filter((entry) => entry.isFile() && !wanted.has(join(entry.parentPath, entry.name)));
  await Promise.all(stale.map((entry) => rm(join(entry.parentPath, entry.name), { force: true })));
}

function inVolume(name: string, error: unknown): Error {
  const message = `volume "${name}": ${error instanceof Error ? error.message : String(error)}`;
  return error instanceof AwaitsObject
    ? new AwaitsObject(message, error.type, error.ref)
    : new Error(message, { cause: error });
}
