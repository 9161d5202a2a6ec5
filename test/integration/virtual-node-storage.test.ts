/** Volumes that outlive Pods: directories behind claims. */
import { access, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { awaitDeletion, awaitObject } from '../../src/kube/await-object.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from '../../src/kube/builtin-resources.ts';
import type { Stored } from '../../src/kube/resource-type.ts';
import { useCluster } from '../support/cluster.ts';

const cluster = useCluster();
const { admin } = cluster;
const TIMEOUT = { timeoutMs: 20_000 };

async function createClaim(namespace: string, more: object = {}): Promise<Stored<PersistentVolumeClaim>> {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...more };
  return admin.create(persistentVolumeClaims, { metadata: { namespace, name: 'data' }, spec });
}

function claimUntil(
  { metadata }: Stored<PersistentVolumeClaim>,
  until: string,
  satisfied: (claim: PersistentVolumeClaim) => boolean,
): Promise<Stored<PersistentVolumeClaim>> {
  return awaitObject(admin, persistentVolumeClaims, metadata, satisfied, { ...TIMEOUT, until });
}

const isBound = ({ status }: PersistentVolumeClaim): boolean => status?.phase === 'Bound';

/** Runs the script with the claim as its working directory; resolves with its output. */
async function runWithClaim(namespace: string, name: string, script: string): Promise<string> {
  const pod = await admin.create(pods, {
    metadata: { namespace, name },
    spec: {
      restartPolicy: 'Never',
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
      containers: [
        {
          name: 'main',
          image: 'process',
          command: ['sh', '-c', script],
          workingDir: '/var/lib/data',
          volumeMounts: [{ name: 'data', mountPath: '/var/lib/data' }],
        },
      ],
    },
  });
  const succeeded = { ...TIMEOUT, until: 'to succeed' };
  await awaitObject(admin, pods, pod.metadata, ({ status }) => status?.phase === 'Succeeded', succeeded);
  return (await cluster.kubectl('-n', namespace, 'logs', name)).stdout;
}

describe.concurrent('a claim', () => {
  it('is bound to a directory that keeps its data from Pod to Pod, and goes with the claim', async () => {
    const namespace = await cluster.namespace();
    const claim = await createClaim(namespace);
    await runWithClaim(namespace, 'writer', 'echo kept > file');
    expect(await runWithClaim(namespace, 'reader', 'cat file')).toBe('kept\n');
    const { spec } = await claimUntil(claim, 'to be Bound', isBound);
    expect(spec?.storageClassName).toBe('local-directory');
    const volume = await admin.get(persistentVolumes, { name: spec?.volumeName ?? '' });
    const path = volume.spec?.hostPath?.path ?? '';
    await access(path);
    await admin.delete(pods, { namespace, name: 'writer' });
    await admin.delete(pods, { namespace, name: 'reader' });
    await admin.delete(persistentVolumeClaims, claim.metadata);
    await awaitDeletion(admin, persistentVolumes, volume.metadata, TIMEOUT);
    await expect(access(path)).rejects.toThrow('ENOENT');
  });

  it('grows', async () => {
    const claim = await createClaim(await cluster.namespace());
    await claimUntil(claim, 'to be Bound', isBound);
    const body = { spec: { resources: { requests: { storage: '5Gi' } } } };
    await admin.patch(persistentVolumeClaims, claim.metadata, { kind: 'merge', body });
    const grown = await claimUntil(
      claim,
      'to have grown',
      ({ status }) => status?.capacity?.['storage'] === '5Gi',
    );
    const volume = await admin.get(persistentVolumes, { name: grown.spec?.volumeName ?? '' });
    expect(volume.spec?.capacity?.['storage']).toBe('5Gi');
  });

  it('is waited for by a Pod that is older than it', async () => {
    const namespace = await cluster.namespace();
    const output = runWithClaim(namespace, 'early', 'echo at last');
    const waiting = { ...TIMEOUT, until: 'to say what it waits for' };
    await awaitObject(
      admin,
      pods,
      { namespace, name: 'early' },
      ({ status }) =>
        status?.containerStatuses?.[0]?.state?.waiting?.message ===
        'volume "data": persistentvolumeclaim "data" not found',
      waiting,
    );
    await createClaim(namespace);
    expect(await output).toBe('at last\n');
  });

  it('keeps its data where the class says so', async () => {
    const namespace = await cluster.namespace();
    await admin.create(storageClasses, {
      metadata: { name: namespace },
      provisioner: 'virtual-node.taskflow.dev/local-directory',
      reclaimPolicy: 'Retain',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    const claim = await createClaim(namespace, { storageClassName: namespace });
    await runWithClaim(namespace, 'writer', 'echo kept > file');
    const { spec } = await claimUntil(claim, 'to be Bound', isBound);
    await admin.delete(pods, { namespace, name: 'writer' });
    await admin.delete(persistentVolumeClaims, claim.metadata);
    const name = spec?.volumeName ?? '';
    const released = { ...TIMEOUT, until: 'to be Released' };
    const volume = await awaitObject(
      admin,
      persistentVolumes,
      { name },
      ({ status }) => status?.phase === 'Released',
      released,
    );
    expect(await readFile(`${volume.spec?.hostPath?.path}/file`, 'utf8')).toBe('kept\n');
    await admin.delete(persistentVolumes, { name });
    await admin.delete(storageClasses, { name: namespace });
  });
});
