import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { type ConfigMap, configMaps } from '../../src/kube/builtin-resources.ts';
import type { Change } from '../../src/kube/change.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { type Connection, openConnection } from '../../src/kube/connection.ts';
import { NotFound } from '../../src/kube/errors.ts';
import { controllerUid, labelValue, ownerUid } from '../../src/kube/indexers.ts';
import { Informer, type InformerOptions } from '../../src/kube/informer.ts';
import { ownerReferenceTo } from '../../src/kube/owner-references.ts';
import { labelsChanged } from '../../src/kube/predicates.ts';
import { HandlerError, MissedChanges } from '../../src/kube/reflector-health.ts';
import { defineResource, type KubeObject } from '../../src/kube/resource-type.ts';
import { useCluster } from '../support/cluster.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { createServiceAccount, requestToken } from '../support/service-account.ts';

const cluster = useCluster();
const { admin } = cluster;
let namespace: string;
beforeAll(async () => {
  namespace = await cluster.namespace('informer');
});

function inform(options: Partial<InformerOptions<ConfigMap>> = {}): Informer<ConfigMap> {
  const informer = new Informer({
    client: admin,
    type: configMaps,
    namespaces: [namespace],
    ...options,
  }).start();
  onTestFinished(() => informer.stop());
  return informer;
}

const named = (name: string, more: Partial<ConfigMap> = {}) => ({
  ...more,
  metadata: { ...more.metadata, name, namespace },
});
const key = (name: string): string => `${namespace}/${name}`;
const untilTold = (changes: readonly Change<ConfigMap>[], name: string, version: string) =>
  vi.waitFor(() =>
    expect(
      changes.map(({ object }) => `${object.metadata.name} ${object.metadata.resourceVersion}`),
    ).toContain(`${name} ${version}`),
  );

describe('an informer', () => {
  it.each([true, false])(
    'fills, follows, and tells who comes late (streamed list: %s)',
    async (streamLists) => {
      const name = `followed-${streamLists}`;
      const { metadata } = await admin.create(configMaps, named(name, { data: { a: '1' } }));
      const informer = inform({ streamLists });
      const early: Change<ConfigMap>[] = [];
      informer.subscribe((change) => early.push(change));
      await informer.synced;
      expect(informer.get(key(name))).toMatchObject({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        data: { a: '1' },
      });
      expect(informer.get(key(name))?.metadata.managedFields).toBeUndefined();
      expect(early.find(({ object }) => object.metadata.name === name)).toMatchObject({
        type: 'added',
        origin: 'initial',
      });

      const late: Change<ConfigMap>[] = [];
      informer.subscribe((change) => late.push(change));
      expect(late.map(({ object }) => object.metadata.name)).toContain(name);
      const updated = await admin.update(configMaps, named(name, { data: { a: '2' } }));
      await untilTold(late, name, updated.metadata.resourceVersion);
      expect(late.at(-1)).toMatchObject({
        type: 'updated',
        origin: 'watch',
        own: false,
        old: { data: { a: '1' } },
      });
      await admin.delete(configMaps, metadata);
      await vi.waitFor(() => expect(informer.get(key(name))).toBeUndefined());
      expect(late.at(-1)?.type).toBe('deleted');
      expect(informer.health).toMatchObject({
        state: 'watching',
        synced: true,
        stale: false,
        relists: 1,
        misses: 0,
      });
    },
  );

  it('finds by owner and label', async () => {
    const owner = await admin.create(configMaps, named('owner'));
    const informer = inform({ indexers: { owner: ownerUid(), size: labelValue('size') } });
    informer.addIndexers({ controller: controllerUid() });
    await informer.synced;
    const metadata = { name: 'owned', labels: { size: 'l' }, ownerReferences: [ownerReferenceTo(owner)] };
    await admin.create(configMaps, named('owned', { metadata }));
    await vi.waitFor(() => expect(informer.byIndex('owner', owner.metadata.uid)).toHaveLength(1));
    expect(informer.byIndex('controller', owner.metadata.uid)).toHaveLength(1);
    expect(informer.byIndex('size', 'l').map((object) => object.metadata.name)).toEqual(['owned']);
  });

  it('of several namespaces is one', async () => {
    const other = await cluster.namespace('informer');
    const informer = inform({ namespaces: [namespace, other] });
    await informer.synced;
    await admin.create(configMaps, { metadata: { name: 'elsewhere', namespace: other } });
    await admin.create(configMaps, named('here'));
    await vi.waitFor(() => {
      expect(informer.get(`${other}/elsewhere`)).toBeDefined();
      expect(informer.get(key('here'))).toBeDefined();
    });
    expect(informer.get('default/kube-root-ca.crt')).toBeUndefined();
  });

  it('goes on when a handler throws, and asks predicates first', async () => {
    const errors: unknown[] = [];
    const informer = inform({ onError: (error) => errors.push(error) });
    await informer.synced;
    const told: string[] = [];
    const relabelled: string[] = [];
    informer.subscribe(({ object, origin }) => {
      if (origin === 'watch') throw new Error(`no ${object.metadata.name}`);
    });
    informer.subscribe(({ object }) => told.push(object.metadata.name));
    informer.subscribe(
      ({ type, object }) => type === 'updated' && relabelled.push(object.metadata.labels?.['a'] ?? ''),
      {
        predicate: labelsChanged,
      },
    );
    const { metadata } = await admin.create(configMaps, named('unlucky'));
    await admin.patch(configMaps, metadata, { kind: 'merge', body: { data: { a: '1' } } });
    await admin.patch(configMaps, metadata, { kind: 'merge', body: { metadata: { labels: { a: 'b' } } } });
    await vi.waitFor(() => expect(relabelled).toEqual(['b']));
    expect(told.filter((name) => name === 'unlucky')).toHaveLength(3);
    expect(informer.health.handlerErrors).toBe(3);
    expect(errors[0]).toBeInstanceOf(HandlerError);
    expect((errors[0] as Error).message).toBe(
      `a handler of configmaps "${key('unlucky')}" failed: no unlucky`,
    );
  });

  it('tells of everything again when it is time', async () => {
    await admin.create(configMaps, named('resynced'));
    const informer = inform({ resyncMs: 100 });
    const resynced: string[] = [];
    informer.subscribe(({ origin, object }) => origin === 'resync' && resynced.push(object.metadata.name));
    await vi.waitFor(() => expect(resynced).toContain('resynced'));
  });

  it('waits for a kind that is not installed yet, and says so', async () => {
    const crds = defineResource<KubeObject & { spec?: object }>(
      'apiextensions.k8s.io/v1',
      'CustomResourceDefinition',
      'customresourcedefinitions',
      'Cluster',
    );
    const group = `${namespace}.example.org`;
    const things = defineResource(`${group}/v1`, 'Thing', 'things', 'Namespaced');
    const informer = new Informer({
      client: admin,
      type: things,
      timing: { slowBackoff: { firstMs: 50, maxMs: 100 } },
    }).start();
    onTestFinished(() => informer.stop());
    await vi.waitFor(() => expect(informer.health.lastError).toBeInstanceOf(NotFound));
    expect(informer.health.synced).toBe(false);
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    const { metadata } = await admin.create(crds, {
      metadata: { name: `things.${group}` },
      spec: {
        group,
        names: { kind: 'Thing', plural: 'things' },
        scope: 'Namespaced',
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    });
    onTestFinished(() => admin.delete(crds, metadata));
    await informer.synced;
    expect(informer.health.lastError).toBeUndefined();
  });
});

describe('our own writes', () => {
  const ROUNDS = 60;

  it('are read at once and marked, whichever comes first, response or event', async () => {
    const { metadata } = await admin.create(configMaps, named('mine'));
    const informer = inform();
    await informer.synced;
    const told: Change<ConfigMap>[] = [];
    informer.subscribe((change) => change.object.metadata.name === 'mine' && told.push(change));
    let last = '';
    for (let n = 0; n < ROUNDS; n++) {
      const body = { data: { n: String(n) } };
      const written = await informer.write(metadata, () =>
        admin.patch(configMaps, metadata, { kind: 'merge', body }),
      );
      expect(informer.get(key('mine'))?.data).toEqual({ n: String(n) });
      last = written.metadata.resourceVersion;
    }
    await untilTold(told, 'mine', last);
    const events = told.filter(({ origin }) => origin === 'watch');
    expect(events).toHaveLength(ROUNDS);
    expect(events.every(({ own }) => own)).toBe(true);
  });

  it('do not hide what others do at the same time', async () => {
    const { metadata } = await admin.create(configMaps, named('ours'));
    const informer = inform();
    await informer.synced;
    const told = new Map<string, boolean>();
    informer.subscribe(({ object, own }) => {
      if (object.metadata.name === 'ours') told.set(object.metadata.resourceVersion, own);
    });
    const patch = (data: Record<string, string>) =>
      admin.patch(configMaps, metadata, { kind: 'merge', body: { data } });
    const expected = new Map<string, boolean>();
    for (let n = 0; n < ROUNDS; n++) {
      const [ours, theirs] = await Promise.all([
        informer.write(metadata, () => patch({ ours: String(n) })),
        patch({ theirs: String(n) }),
      ]);
      expected.set(ours.metadata.resourceVersion, true);
      expected.set(theirs.metadata.resourceVersion, false);
      expect(informer.get(key('ours'))?.data?.['ours']).toBe(String(n));
    }
    await vi.waitFor(() => {
      for (const [version, own] of expected) expect([version, told.get(version)]).toEqual([version, own]);
    });
    await vi.waitFor(() =>
      expect(informer.get(key('ours'))?.data).toEqual({
        ours: String(ROUNDS - 1),
        theirs: String(ROUNDS - 1),
      }),
    );
  });

  it('that fail hold nothing back', async () => {
    const { metadata } = await admin.create(configMaps, named('failing'));
    const informer = inform();
    await informer.synced;
    const told: Change<ConfigMap>[] = [];
    informer.subscribe((change) => told.push(change));
    const theirs = await admin.patch(configMaps, metadata, { kind: 'merge', body: { data: { a: '1' } } });
    await expect(
      informer.write(metadata, async () => {
        await admin.patch(configMaps, metadata, { kind: 'merge', body: { data: { a: '2' } } });
        throw new Error('the answer was lost');
      }),
    ).rejects.toThrow('the answer was lost');
    await untilTold(told, 'failing', theirs.metadata.resourceVersion);
    await vi.waitFor(() => expect(informer.get(key('failing'))?.data).toEqual({ a: '2' }));
    expect(told.at(-1)?.own).toBe(false);
  });
});

describe('through a proxy', () => {
  let proxy: FaultProxy;
  let connection: Connection;
  let client: KubeClient;

  beforeAll(async () => {
    const account = { namespace, name: 'watcher' };
    await createServiceAccount(admin, account, { clusterRole: 'view' });
    proxy = await startFaultProxy({ target: inject('cluster') });
    connection = openConnection({
      server: proxy.server,
      ca: proxy.ca,
      token: await requestToken(admin, account),
    });
    client = new KubeClient(connection);
  });
  afterAll(async () => {
    await connection.close();
    await proxy.stop();
  });

  it('falls back to pages where the server cannot stream lists', async () => {
    const refused = proxy.inject({
      kind: 'status',
      code: 422,
      reason: 'Invalid',
      where: ({ query }) => query.has('sendInitialEvents'),
    });
    const before = proxy.requests.length;
    const informer = inform({ client });
    await informer.synced;
    const [streamed, listed] = proxy.requests.slice(before);
    expect(refused.hits).toBe(1);
    expect(streamed?.watch).toBe(true);
    expect(listed).toMatchObject({ watch: false, status: 200 });
    expect(Object.fromEntries(listed?.query ?? [])).toMatchObject({ limit: '500', resourceVersion: '0' });
    await vi.waitFor(() => expect(informer.health.state).toBe('watching'));
    await informer.stop();
    proxy.clear();
  });

  it('asks for bookmarks and a time-out of five to ten minutes', async () => {
    const before = proxy.requests.length;
    const informer = inform({ client });
    await informer.synced;
    const query = proxy.requests.slice(before).find(({ watch }) => watch)?.query;
    expect(query?.get('allowWatchBookmarks')).toBe('true');
    expect(Number(query?.get('timeoutSeconds'))).toBeGreaterThanOrEqual(300);
    expect(Number(query?.get('timeoutSeconds'))).toBeLessThan(600);
    await informer.stop();
    await expect.poll(() => proxy.openWatches).toBe(0);
  });

  it('finds and mends what a watch did not tell', async () => {
    await admin.create(configMaps, named('kept'));
    const gone = await admin.create(configMaps, named('deleted-in-silence'));
    const errors: unknown[] = [];
    const informer = inform({
      client,
      timing: { relistMs: 300, missGraceMs: 50 },
      onError: (error) => errors.push(error),
    });
    await informer.synced;
    await vi.waitFor(() => expect(informer.health.relists).toBeGreaterThan(1));
    expect(informer.health.misses).toBe(0);

    expect(proxy.silenceWatches()).toBe(1);
    await admin.create(configMaps, named('made-in-silence'));
    await admin.delete(configMaps, gone.metadata);
    await vi.waitFor(() => expect(informer.health.misses).toBe(2), { timeout: 5_000 });
    expect(informer.get(key('made-in-silence'))).toBeDefined();
    expect(informer.get(key('deleted-in-silence'))).toBeUndefined();
    expect(errors.some((error) => error instanceof MissedChanges)).toBe(true);
  });
});
