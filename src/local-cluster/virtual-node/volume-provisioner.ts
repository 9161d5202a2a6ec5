/**
 * Storage of the virtual node: a directory per claim. The controller manager
 * binds claims and volumes; this makes and removes the volumes, as external
 * provisioners and resizers do. Every step looks at the newest objects and may
 * be repeated: the volume's name comes from the claim's uid, the directory is
 * made before the volume and removed before it.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  type StorageClass,
  storageClasses,
} from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { AlreadyExists, Conflict, NotFound } from '../../kube/errors.ts';
import { Reflector } from '../../kube/reflector.ts';
import { objectKey, type Stored } from '../../kube/resource-type.ts';
import { DOMAIN } from './annotations.ts';
import { isLarger } from './quantity.ts';

export const PROVISIONER = `${DOMAIN}/local-directory`;
export const STORAGE_CLASS = 'local-directory';

type Claim = Stored<PersistentVolumeClaim>;
type Volume = Stored<PersistentVolume>;

export interface ProvisionerOptions {
  readonly client: KubeClient;
  /** The directories of all volumes. */
  readonly dir: string;
  readonly onError: (error: unknown) => void;
}

const ASKED_OF = [
  'volume.kubernetes.io/storage-provisioner',
  'volume.beta.kubernetes.io/storage-provisioner',
];
const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
const RETRY = { firstMs: 500, maxMs: 30_000 };

export class VolumeProvisioner {
  readonly #options: ProvisionerOptions;
  readonly #stopping = new AbortController();
  readonly #claims: Reflector<PersistentVolumeClaim>;
  readonly #volumes: Reflector<PersistentVolume>;
  readonly #classes: Reflector<StorageClass>;
  readonly #work = new Map<string, { again: boolean }>();

  constructor(options: ProvisionerOptions) {
    this.#options = options;
    const { client, onError } = options;
    this.#claims = new Reflector({
      client,
      type: persistentVolumeClaims,
      onError,
      onChange: ({ type, object }) => type !== 'deleted' && this.#lookAtClaim(objectKey(object.metadata)),
    });
    this.#volumes = new Reflector({
      client,
      type: persistentVolumes,
      onError,
      onChange: ({ type, object }) => this.#volumeChanged(object, type === 'deleted'),
    });
    this.#classes = new Reflector({
      client,
      type: storageClasses,
      onError,
      // A claim may be older than its class, or wait for the class to allow growth.
      onChange: () =>
        [...this.#claims.values()].forEach(({ metadata }) => this.#lookAtClaim(objectKey(metadata))),
    });
  }

  async start(): Promise<this> {
    await mkdir(this.#options.dir, { recursive: true, mode: 0o700 });
    await this.#createClass();
    this.#classes.start();
    this.#volumes.start();
    this.#claims.start();
    return this;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#claims.stop(), this.#volumes.stop(), this.#classes.stop()]);
  }

  async #createClass(): Promise<void> {
    const storageClass: StorageClass = {
      metadata: {
        name: STORAGE_CLASS,
        annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' },
      },
      provisioner: PROVISIONER,
      allowVolumeExpansion: true,
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
    };
    try {
      await this.#options.client.create(storageClasses, storageClass, { signal: this.#stopping.signal });
    } catch (error) {
      // The user's own settings of the class stay.
      if (!(error instanceof AlreadyExists)) throw error;
    }
  }

  #volumeChanged(volume: Volume, deleted: boolean): void {
    if (!isOurs(volume)) return;
    const { name } = volume.metadata;
    if (deleted) this.#do(`remove ${name}`, () => this.#removeDirectory(volume));
    else if (isReleased(volume)) this.#do(`reclaim ${name}`, () => this.#reclaim(name));
    const claim = volume.spec?.claimRef;
    if (!deleted && claim) this.#lookAtClaim(objectKey(claim));
  }

  #lookAtClaim(key: string): void {
    this.#do(`claim ${key}`, () => this.#reconcileClaim(key));
  }

  /** One run per key at a time; what changes meanwhile is looked at afterwards, a failure after a pause. */
  #do(key: string, task: () => Promise<void>): void {
    const running = this.#work.get(key);
    if (running) {
      running.again = true;
      return;
    }
    const work = { again: true };
    this.#work.set(key, work);
    void this.#run(work, task).finally(() => this.#work.delete(key));
  }

  async #run(work: { again: boolean }, task: () => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    for (let failures = 0; work.again && !signal.aborted;) {
      work.again = false;
      try {
        await task();
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        work.again = true;
        // A conflict means a newer object, which is on its way to us.
        if (!(error instanceof Conflict)) this.#options.onError(error);
        await systemClock.sleep(Math.min(RETRY.maxMs, RETRY.firstMs * 2 ** failures++), signal);
      }
    }
  }

  async #reconcileClaim(key: string): Promise<void> {
    const claim = this.#claims.get(key);
    const storageClass = this.#classes.get(claim?.spec?.storageClassName ?? '');
    if (!claim || claim.metadata.deletionTimestamp !== undefined) return;
    if (claim.spec?.volumeName === undefined) {
      if (storageClass && isAsked(claim, storageClass)) await this.#provision(claim, storageClass);
    } else if (storageClass?.allowVolumeExpansion) await this.#expand(claim, claim.spec.volumeName);
  }

  async #provision(claim: Claim, storageClass: StorageClass): Promise<void> {
    const name = `pvc-${claim.metadata.uid}`;
    const refusal = refusalOf(claim);
    if (refusal !== undefined) {
      this.#options.onError(new Error(`PersistentVolumeClaim "${objectKey(claim.metadata)}": ${refusal}`));
      return;
    }
    const path = this.#directory(name);
    await mkdir(path, { recursive: true, mode: 0o700 });
    try {
      await this.#options.client.create(persistentVolumes, volumeFor(claim, storageClass, name, path), {
        signal: this.#stopping.signal,
      });
    } catch (error) {
      if (!(error instanceof AlreadyExists)) throw error;
    }
  }

  /** First the volume, then what the claim says of it: a claim never promises more than there is. */
  async #expand(claim: Claim, volumeName: string): Promise<void> {
    const volume = this.#volumes.get(volumeName);
    const wanted = claim.spec?.resources?.requests?.['storage'];
    const capacity = volume?.spec?.capacity?.['storage'];
    if (!volume || !isOurs(volume) || wanted === undefined || capacity === undefined) return;
    if (claim.status?.phase !== 'Bound') return;
    const { client } = this.#options;
    const { signal } = this.#stopping;
    if (isLarger(wanted, capacity)) {
      const body = { metadata: { uid: volume.metadata.uid }, spec: { capacity: { storage: wanted } } };
      await client.patch(persistentVolumes, volume.metadata, { kind: 'merge', body }, { signal });
    }
    const granted = isLarger(wanted, capacity) ? wanted : capacity;
    const shown = claim.status.capacity?.['storage'];
    const resizing = (claim.status.conditions ?? []).some(({ type }) => isAboutSize(type));
    if (shown !== undefined && !isLarger(granted, shown) && !resizing) return;
    const conditions = (claim.status.conditions ?? []).filter(({ type }) => !isAboutSize(type));
    const body = {
      metadata: { uid: claim.metadata.uid, resourceVersion: claim.metadata.resourceVersion },
      status: { capacity: { storage: granted }, conditions },
    };
    await client.patch(
      persistentVolumeClaims,
      claim.metadata,
      { kind: 'merge', body },
      { subresource: 'status', signal },
    );
  }

  async #reclaim(name: string): Promise<void> {
    const volume = this.#volumes.get(name);
    if (!volume || !isOurs(volume) || !isReleased(volume)) return;
    await this.#removeDirectory(volume);
    const { uid } = volume.metadata;
    try {
      await this.#options.client.delete(persistentVolumes, volume.metadata, {
        preconditions: { uid },
        signal: this.#stopping.signal,
      });
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
    }
  }

  /** Only a directory that we made for it: a hostPath that somebody edited is left alone. */
  async #removeDirectory(volume: Volume): Promise<void> {
    const path = this.#directory(volume.metadata.name);
    if (volume.spec?.persistentVolumeReclaimPolicy !== 'Delete' || volume.spec.hostPath?.path !== path)
      return;
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  }

  #directory(volumeName: string): string {
    return join(this.#options.dir, volumeName);
  }
}

export function volumeFor(
  claim: Claim,
  { reclaimPolicy = 'Delete' }: StorageClass,
  name: string,
  path: string,
): PersistentVolume {
  const { storageClassName, accessModes = [], resources } = claim.spec ?? {};
  const { name: claimName, namespace = '', uid } = claim.metadata;
  return {
    metadata: { name, annotations: { [PROVISIONED_BY]: PROVISIONER } },
    spec: {
      capacity: { storage: resources?.requests?.['storage'] ?? '1Gi' },
      accessModes: [...accessModes],
      volumeMode: 'Filesystem',
      persistentVolumeReclaimPolicy: reclaimPolicy,
      ...(storageClassName !== undefined && { storageClassName }),
      hostPath: { path, type: 'DirectoryOrCreate' },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: claimName, uid },
    },
  };
}

/** A claim that waits for its first consumer has no other node to wait for. */
export function isAsked(claim: Claim, { provisioner, volumeBindingMode }: StorageClass): boolean {
  if (provisioner !== PROVISIONER) return false;
  return (
    volumeBindingMode === 'WaitForFirstConsumer' ||
    ASKED_OF.some((annotation) => claim.metadata.annotations?.[annotation] === PROVISIONER)
  );
}

/** What a directory cannot be. */
export function refusalOf({ spec }: Claim): string | undefined {
  if (spec?.volumeMode === 'Block') return 'block volumes are not supported by the virtual node';
  if (spec?.dataSource ?? spec?.dataSourceRef) return 'data sources are not supported by the virtual node';
  return undefined;
}

function isOurs(volume: Volume): boolean {
  return volume.metadata.annotations?.[PROVISIONED_BY] === PROVISIONER;
}

function isReleased({ status, spec, metadata }: Volume): boolean {
  return (
    status?.phase === 'Released' &&
    spec?.persistentVolumeReclaimPolicy === 'Delete' &&
    metadata.deletionTimestamp === undefined
  );
}

function isAboutSize(conditionType: string): boolean {
  return conditionType === 'Resizing' || conditionType === 'FileSystemResizePending';
}
