import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ChildApplier } from '../../src/kube/apply-children.ts';
import { type ConfigMap, configMaps, type Pod, pods } from '../../src/kube/builtin-resources.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { openConnection } from '../../src/kube/connection.ts';
import { Informer } from '../../src/kube/informer.ts';
import { connectionFromKubeconfig } from '../../src/kube/kubeconfig.ts';
import { AlreadyOwned } from '../../src/kube/owner-references.ts';
import { type KubeObject, objectKey, type ResourceType, type Stored } from '../../src/kube/resource-type.ts';
import { useCluster } from '../support/cluster.ts';

const cluster = useCluster();
const { admin } = cluster;
let namespace: string;
let owner: Stored<ConfigMap>;
beforeAll(async () => {
  namespace = await cluster.namespace('apply');
  owner = await admin.create(configMaps, { metadata: { name: 'owner', namespace } });
});

interface Bench<T extends KubeObject> {
  readonly informer: Informer<T>;
  readonly applier: ChildApplier;
  /** Requests so far. */
  readonly requests: () => number;
}

/** An applier whose requests are counted, with a cache beside it. */
async function bench<T extends KubeObject>(type: ResourceType<T>): Promise<Bench<T>> {
  const connection = openConnection(await connectionFromKubeconfig({ path: cluster.kubeconfig }));
  let count = 0;
  const client = new KubeClient(connection, { observer: { request: () => count++ } });
  const informer = new Informer({ client: admin, type, namespaces: [namespace] }).start();
  await informer.synced;
  onTestFinished(async () => {
    await informer.stop();
    await connection.close();
  });
  return {
    informer,
    applier: new ChildApplier({ client, fieldManager: 'taskflow/test' }),
    requests: () => count,
  };
}

const child = (name: string, data: Record<string, string>) => ({ metadata: { name, namespace }, data });

describe('children', () => {
  it('are written once, and not again while nothing changed', async () => {
    const { informer, applier, requests } = await bench(configMaps);
    const wanted = child('once', { a: '1' });
    expect(await applier.apply(configMaps, informer, wanted, { owner })).toMatchObject({ action: 'applied' });
    expect(requests()).toBe(1);
    for (let n = 0; n < 5; n++)
      expect(await applier.apply(configMaps, informer, wanted, { owner })).toMatchObject({
        action: 'unchanged',
      });
    // After the event has replaced what we wrote, and for another process, too.
    const { metadata } = await admin.get(configMaps, wanted.metadata);
    await vi.waitFor(() => expect(informer.health.resourceVersion >= metadata.resourceVersion).toBe(true));
    const restarted = new ChildApplier({ client: admin, fieldManager: 'taskflow/test' });
    expect(await restarted.apply(configMaps, informer, wanted, { owner })).toMatchObject({
      action: 'unchanged',
    });
    expect(requests()).toBe(1);
    expect(metadata.ownerReferences).toMatchObject([{ uid: owner.metadata.uid, controller: true }]);
    expect(metadata.managedFields?.map(({ manager }) => manager)).toEqual(['taskflow/test']);
  });

  it('are put right when somebody changed a field of ours; fields of others stay', async () => {
    const { informer, applier, requests } = await bench(configMaps);
    const wanted = child('drifting', { a: '1', b: '1' });
    await applier.apply(configMaps, informer, wanted, { owner });
    const changed = (data: Record<string, string | null>) =>
      admin.patch(configMaps, wanted.metadata, { kind: 'merge', body: { data } });
    const seen = ({ metadata }: Stored) =>
      vi.waitFor(() =>
        expect(informer.get(objectKey(metadata))?.metadata.resourceVersion).toBe(metadata.resourceVersion),
      );
    await seen(await changed({ theirs: 'x' }));
    expect((await applier.apply(configMaps, informer, wanted, { owner })).action).toBe('unchanged');
    await seen(await changed({ a: '2' }));
    expect(await applier.apply(configMaps, informer, wanted, { owner })).toMatchObject({
      action: 'applied',
      object: { data: { a: '1', b: '1', theirs: 'x' } },
    });
    await seen(await changed({ b: null }));
    expect((await applier.apply(configMaps, informer, wanted, { owner })).action).toBe('applied');
    expect(requests()).toBe(3);
  });

  it('lose fields that are no longer wanted', async () => {
    const { informer, applier } = await bench(configMaps);
    await applier.apply(configMaps, informer, child('shrinking', { a: '1', b: '1' }), { owner });
    const { object, action } = await applier.apply(configMaps, informer, child('shrinking', { a: '1' }), {
      owner,
    });
    expect({ action, data: object.data }).toEqual({ action: 'applied', data: { a: '1' } });
  });

  it('that the server writes in another form are not written for ever', async () => {
    const { informer, applier, requests } = await bench<Pod>(pods);
    // 1000m becomes 1; admission adds a volume, a mount and tolerations.
    const wanted = {
      metadata: { name: 'normalized', namespace },
      spec: {
        nodeName: 'nowhere',
        containers: [{ name: 'c', image: 'i', resources: { limits: { cpu: '1000m' } } }],
        tolerations: [{ key: 'a', operator: 'Exists' }],
      },
    };
    await applier.apply(pods, informer, wanted, { owner });
    for (let n = 0; n < 3; n++)
      expect((await applier.apply(pods, informer, wanted, { owner })).action).toBe('unchanged');
    expect(requests()).toBe(1);
    await admin.delete(pods, wanted.metadata, { gracePeriodSeconds: 0 });
  });

  it('of somebody else are not touched', async () => {
    const { informer, applier, requests } = await bench(configMaps);
    const other = await admin.create(configMaps, { metadata: { name: 'other-owner', namespace } });
    await applier.apply(configMaps, informer, child('taken', { a: '1' }), { owner: other });
    await expect(applier.apply(configMaps, informer, child('taken', { a: '2' }), { owner })).rejects.toThrow(
      AlreadyOwned,
    );
    expect(requests()).toBe(1);
  });

  it('on their way out are left alone', async () => {
    const { informer, applier } = await bench(configMaps);
    const wanted = {
      ...child('leaving', { a: '1' }),
      metadata: { name: 'leaving', namespace, finalizers: ['taskflow.dev/x'] },
    };
    const { object } = await applier.apply(configMaps, informer, wanted, { owner });
    await admin.delete(configMaps, wanted.metadata);
    await vi.waitFor(() =>
      expect(informer.get(objectKey(object.metadata))?.metadata.deletionTimestamp).toBeDefined(),
    );
    expect((await applier.apply(configMaps, informer, child('leaving', { a: '2' }), { owner })).action).toBe(
      'deleting',
    );
    await admin.patch(configMaps, wanted.metadata, {
      kind: 'merge',
      body: { metadata: { finalizers: null } },
    });
  });
});
