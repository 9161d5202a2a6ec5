import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { awaitDeletion } from '../../src/kube/await-object.ts';
import { configMaps, jobs, namespaces, nodes, pods, secrets } from '../../src/kube/builtin-resources.ts';
import { KubeClient, type RequestSample } from '../../src/kube/client.ts';
import { openConnection } from '../../src/kube/connection.ts';
import {
  AlreadyExists,
  ApiError,
  Conflict,
  ConnectionError,
  DeadlineExceeded,
  Forbidden,
  Gone,
  Invalid,
  NotFound,
  RequestAborted,
  TooManyRequests,
  Unauthorized,
} from '../../src/kube/errors.ts';
import { connectionFromKubeconfig } from '../../src/kube/kubeconfig.ts';
import { addFinalizer, removeFinalizer } from '../../src/kube/finalizers.ts';
import { defineResource } from '../../src/kube/resource-type.ts';
import { useCluster } from '../support/cluster.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { createServiceAccount, requestToken } from '../support/service-account.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const cluster = useCluster();
const { admin } = cluster;
let namespace: string;
beforeAll(async () => {
  namespace = await cluster.namespace('client');
});

const named = (name: string, data?: Record<string, string>) => ({
  metadata: { name, namespace },
  ...(data && { data }),
});

describe('verbs', () => {
  it('create, get, list, update and delete', async () => {
    const made = await admin.create(configMaps, named('verbs', { a: '1' }), { fieldManager: 'test' });
    expect(made).toMatchObject({ kind: 'ConfigMap', data: { a: '1' } });
    expect(made.metadata.managedFields?.[0]?.manager).toBe('test');
    const updated = await admin.update(configMaps, { ...made, data: { a: '2' } });
    expect(updated.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion);
    expect(await admin.get(configMaps, made.metadata)).toMatchObject({ data: { a: '2' } });
    const { items } = await admin.list(configMaps, { namespace, fieldSelector: 'metadata.name=verbs' });
    expect(items).toMatchObject([{ apiVersion: 'v1', kind: 'ConfigMap', data: { a: '2' } }]);
    await admin.delete(configMaps, made.metadata, { preconditions: { uid: made.metadata.uid } });
    await expect(admin.get(configMaps, made.metadata)).rejects.toThrow(NotFound);
  });

  it('merge, JSON and strategic patches, and server-side apply', async () => {
    const { metadata } = await admin.create(configMaps, named('patched', { a: '1', b: '1' }));
    const merged = await admin.patch(configMaps, metadata, {
      kind: 'merge',
      body: { data: { a: null, c: '1' } },
    });
    expect(merged.data).toEqual({ b: '1', c: '1' });
    const body = [
      { op: 'test', path: '/data/b', value: '1' },
      { op: 'replace', path: '/data/b', value: '2' },
    ];
    expect((await admin.patch(configMaps, metadata, { kind: 'json', body })).data).toEqual({
      b: '2',
      c: '1',
    });
    const strategic = { kind: 'strategic', body: { data: { d: '1' } } } as const;
    expect((await admin.patch(configMaps, metadata, strategic)).data).toMatchObject({ d: '1' });
    const applied = await admin.apply(configMaps, named('patched', { b: '3' }), { fieldManager: 'applier' });
    expect(applied.data).toEqual({ b: '3', c: '1', d: '1' });
    const gentle = admin.apply(configMaps, named('patched', { b: '4' }), {
      fieldManager: 'gentle',
      force: false,
    });
    await expect(gentle).rejects.toThrow(Conflict);
    await expect(gentle).rejects.toThrow(/patch configmaps ".*\/patched": .*conflict with "applier"/);
  });

  it('the status subresource', async () => {
    const spec = {
      template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } },
      suspend: true,
    };
    const job = await admin.create(jobs, { ...named('job'), spec });
    const status = { conditions: [{ type: 'example.org/Seen', status: 'True' }] };
    const patched = await admin.patch(
      jobs,
      job.metadata,
      { kind: 'merge', body: { status, spec: { suspend: false } } },
      { subresource: 'status' },
    );
    expect(patched.status?.conditions).toEqual(
      expect.arrayContaining([expect.objectContaining({ type: 'example.org/Seen' })]),
    );
    expect(patched.spec?.suspend).toBe(true);
  });

  it('dry run changes nothing', async () => {
    await admin.create(configMaps, named('dry'), { dryRun: true });
    await expect(admin.get(configMaps, named('dry').metadata)).rejects.toThrow(NotFound);
    const real = await admin.create(configMaps, named('dry'));
    await admin.delete(configMaps, real.metadata, { dryRun: true });
    await admin.patch(
      configMaps,
      real.metadata,
      { kind: 'merge', body: { data: { a: '1' } } },
      { dryRun: true },
    );
    expect((await admin.get(configMaps, real.metadata)).data).toBeUndefined();
  });

  it('delete with preconditions of another object is a conflict', async () => {
    const { metadata } = await admin.create(configMaps, named('guarded'));
    const wrong = admin.delete(configMaps, metadata, { preconditions: { uid: 'other' } });
    await expect(wrong).rejects.toThrow(Conflict);
    await expect(wrong).rejects.toThrow(/delete configmaps ".*\/guarded": .*uid/i);
  });

  it('listAll follows pages', async () => {
    const names = Array.from({ length: 7 }, (_, n) => `page-${n}`);
    await Promise.all(names.map((name) => admin.create(secrets, { metadata: { name, namespace } })));
    const found: string[] = [];
    for await (const { metadata } of admin.listAll(secrets, { namespace, limit: 2 }))
      found.push(metadata.name);
    expect(found).toEqual(expect.arrayContaining(names));
    expect(new Set(found).size).toBe(found.length);
  });

  it('finds resources', async () => {
    const all = await admin.discover();
    const deployment = all.find(({ type }) => type.kind === 'Deployment');
    expect(deployment).toMatchObject({
      type: { group: 'apps', version: 'v1', plural: 'deployments', namespaced: true },
      preferred: true,
      shortNames: ['deploy'],
    });
    expect(deployment?.subresources).toContain('status');
    expect(all.find(({ type }) => type.kind === 'Pod')?.type.group).toBe('');
    expect(await admin.resourceFor('v1', 'Node')).toEqual(nodes);
    await expect(admin.resourceFor('apps/v1', 'Deploiment')).rejects.toThrow(
      'the server has no kind Deploiment in apps/v1; is its CRD installed?',
    );
  });

  it('acts in the name of others', async () => {
    const nobody = admin.impersonate({ user: 'jane', groups: ['a', 'b'] });
    await expect(nobody.list(pods, { namespace })).rejects.toThrow(/User "jane" cannot list resource "pods"/);
    const chief = admin.impersonate({ user: 'jane', groups: ['a', 'system:masters'] });
    await expect(chief.list(pods, { namespace })).resolves.toBeDefined();
  });

  it('finalizers: only our own, whatever others write meanwhile', async () => {
    const old = await admin.create(configMaps, named('finalized'));
    const ours = await addFinalizer(admin, configMaps, old, 'taskflow.dev/ours');
    // `old` is outdated by now: both go by what the server has.
    await addFinalizer(admin, configMaps, old, 'taskflow.dev/theirs');
    const both = await addFinalizer(admin, configMaps, old, 'taskflow.dev/ours');
    expect(both.metadata.finalizers).toEqual(['taskflow.dev/ours', 'taskflow.dev/theirs']);
    await admin.delete(configMaps, old.metadata);
    await expect(
      addFinalizer(admin, configMaps, await admin.get(configMaps, old.metadata), 'x.dev/late'),
    ).rejects.toThrow('is being deleted: finalizer x.dev/late cannot be added');
    const left = await removeFinalizer(admin, configMaps, both, 'taskflow.dev/theirs');
    expect(left?.metadata.finalizers).toEqual(['taskflow.dev/ours']);
    await removeFinalizer(admin, configMaps, ours, 'taskflow.dev/ours');
    await awaitDeletion(admin, configMaps, old.metadata, { timeoutMs: 5_000 });
    await expect(removeFinalizer(admin, configMaps, ours, 'taskflow.dev/ours')).resolves.toBeUndefined();
  });
});

describe('errors say what was asked of whom', () => {
  const shared = inject('cluster');

  it('NotFound, AlreadyExists, Conflict', async () => {
    await expect(admin.get(pods, { namespace, name: 'none' })).rejects.toThrow(
      `get pods "${namespace}/none": pods "none" not found`,
    );
    const made = await admin.create(configMaps, named('twice'));
    const again = admin.create(configMaps, named('twice'));
    await expect(again).rejects.toThrow(AlreadyExists);
    await expect(again).rejects.toThrow(
      `create configmaps "${namespace}/twice": configmaps "twice" already exists`,
    );
    await admin.update(configMaps, { ...made, data: { a: '1' } });
    const late = admin.update(configMaps, { ...made, data: { a: '2' } });
    await expect(late).rejects.toThrow(Conflict);
    await expect(late).rejects.toThrow(/update configmaps ".*\/twice": .*the object has been modified/);
  });

  it('Invalid, with every cause', async () => {
    const wrong = admin.create(pods, {
      ...named('wrong'),
      spec: { containers: [{ name: 'A_' }, { name: 'B_' }] },
    });
    const error: unknown = await wrong.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Invalid);
    const fields = (error as Invalid).causes.map(({ field }) => field);
    expect(fields).toEqual(expect.arrayContaining(['spec.containers[0].name', 'spec.containers[1].image']));
    expect((error as Invalid).message).toMatch(
      /create pods ".*\/wrong": .*spec\.containers\[0\]\.name.*spec\.containers\[1\]\.image/s,
    );
  });

  it('Forbidden and Unauthorized', async () => {
    await createServiceAccount(admin, { namespace, name: 'powerless' });
    const token = await requestToken(admin, { namespace, name: 'powerless' });
    await using known = openConnection({ ...shared, token });
    const denied = new KubeClient(known).list(pods, { namespace });
    await expect(denied).rejects.toThrow(Forbidden);
    await expect(denied).rejects.toThrow(
      /^list pods ".*": pods is forbidden: User ".*powerless" cannot list/,
    );
    await using unknown = openConnection({ ...shared, token: 'wrong' });
    const stranger = new KubeClient(unknown).list(pods, { namespace });
    await expect(stranger).rejects.toThrow(Unauthorized);
    await expect(stranger).rejects.toThrow(/^list pods ".*": Unauthorized/);
  });

  it('a server that is not there, or not ours', async () => {
    await using closed = openConnection({ ...shared, server: 'https://127.0.0.1:1' });
    const nowhere = new KubeClient(closed, { retry: { maxTries: 2, firstMs: 1 } }).get(nodes, { name: 'n' });
    await expect(nowhere).rejects.toThrow(ConnectionError);
    await expect(nowhere).rejects.toThrow('get nodes "n" (try 2): connect ECONNREFUSED 127.0.0.1:1');
    await using untrusted = openConnection({ server: shared.server, ca: '' });
    await expect(new KubeClient(untrusted).get(nodes, { name: 'n' })).rejects.toThrow(
      /^get nodes "n": .*(self-signed|unable to)/,
    );
  });
});

describe('deadlines, aborts and retries', () => {
  let proxy: FaultProxy;
  let client: KubeClient;
  const samples: RequestSample[] = [];
  const cleanup: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    const account = { namespace, name: 'editor' };
    await createServiceAccount(admin, account, { clusterRole: 'cluster-admin' });
    proxy = await startFaultProxy({ target: inject('cluster') });
    const connection = openConnection({
      server: proxy.server,
      ca: proxy.ca,
      token: await requestToken(admin, account),
    });
    client = new KubeClient(connection, {
      observer: { request: (sample) => samples.push(sample) },
      retry: { firstMs: 1, maxMs: 2 },
    });
    cleanup.push(
      () => connection.close(),
      () => proxy.stop(),
    );
  });
  afterAll(async () => {
    for (const clean of cleanup) await clean();
  });

  /** What the proxy saw of this object, in order. */
  const seen = (name: string): string[] =>
    proxy.requests
      .filter(({ path }) => path.endsWith(`/${name}`))
      .map(({ method, status }) => `${method} ${status}`);

  it('reads are tried again on 429, 5xx and broken connections', async () => {
    await admin.create(configMaps, named('flaky'));
    proxy.inject({ kind: 'status', code: 429, retryAfterSeconds: 0, times: 1, path: /flaky/ });
    proxy.inject({ kind: 'status', code: 500, times: 1, path: /flaky/ });
    proxy.inject({ kind: 'reset', when: 'before', times: 1, path: /flaky/ });
    await expect(client.get(configMaps, named('flaky').metadata)).resolves.toBeDefined();
    expect(seen('flaky')).toEqual(['GET 429', 'GET 500', 'GET undefined', 'GET 200']);
    expect(samples.slice(-4).map(({ code, retries }) => [code, retries])).toEqual([
      [429, 0],
      [500, 1],
      [undefined, 2],
      [200, 3],
    ]);
    expect(samples.at(-1)).toMatchObject({ method: 'GET', host: new URL(proxy.server).host });
    expect(samples.at(-1)?.responseBytes).toBeGreaterThan(100);
  });

  it('Retry-After is waited for, unless the deadline comes first', async () => {
    await admin.create(configMaps, named('busy'));
    proxy.inject({ kind: 'status', code: 429, retryAfterSeconds: 1, times: 1, path: /busy/ });
    const began = performance.now();
    await client.get(configMaps, named('busy').metadata);
    expect(performance.now() - began).toBeGreaterThan(1_000);
    proxy.inject({ kind: 'status', code: 429, retryAfterSeconds: 60, times: 1, path: /busy/ });
    const refused = client.get(configMaps, named('busy').metadata, { timeoutMs: 5_000 });
    await expect(refused).rejects.toThrow(TooManyRequests);
    await expect(refused).rejects.toMatchObject({ retryAfterMs: 60_000 });
  });

  it('gives up after five tries, and says so', async () => {
    const fault = proxy.inject({ kind: 'status', code: 503, path: /hopeless/ });
    await expect(client.get(configMaps, named('hopeless').metadata)).rejects.toThrow(
      new RegExp(`get configmaps ".*/hopeless" \\(try 5\\)`),
    );
    fault.remove();
    expect(seen('hopeless')).toHaveLength(5);
  });

  it('a create whose answer is lost is not sent twice', async () => {
    proxy.inject({ kind: 'reset', when: 'after', times: 1, method: 'POST', path: /configmaps$/ });
    await expect(client.create(configMaps, named('once'))).rejects.toThrow(ConnectionError);
    await expect(admin.get(configMaps, named('once').metadata)).resolves.toBeDefined();
    proxy.inject({
      kind: 'status',
      code: 429,
      retryAfterSeconds: 0,
      times: 1,
      method: 'POST',
      path: /configmaps$/,
    });
    await expect(client.create(configMaps, named('refused-once'))).resolves.toBeDefined();
  });

  it('an update with its version is sent twice; the conflict tells that it was', async () => {
    const made = await admin.create(configMaps, named('versioned'));
    proxy.inject({ kind: 'reset', when: 'after', times: 1, method: 'PUT', path: /versioned/ });
    const error: unknown = await client
      .update(configMaps, { ...made, data: { a: '1' } })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Conflict);
    expect((error as Conflict).retries).toBe(1);
    expect((await admin.get(configMaps, made.metadata)).data).toEqual({ a: '1' });
  });

  it('a delete is sent twice only if it cannot hit a successor', async () => {
    const { metadata } = await admin.create(configMaps, named('gone'));
    const lost = { kind: 'reset', when: 'after', times: 1, method: 'DELETE', path: /gone/ } as const;
    proxy.inject(lost);
    const guarded = client.delete(configMaps, metadata, { preconditions: { uid: metadata.uid } });
    await expect(guarded).rejects.toThrow(NotFound);
    await admin.create(configMaps, named('gone'));
    proxy.inject(lost);
    await expect(client.delete(configMaps, metadata)).rejects.toThrow(ConnectionError);
  });

  it('a call ends at its deadline and with its signal, whatever the server does', async () => {
    await admin.create(configMaps, named('slow'));
    const fault = proxy.inject({ kind: 'half-open', path: /slow/ });
    const late = client.get(configMaps, named('slow').metadata, { timeoutMs: 200 });
    await expect(late).rejects.toThrow(DeadlineExceeded);
    await expect(late).rejects.toThrow(/slow": no answer within 0.2 s/);
    const caller = new AbortController();
    const aborted = client.get(configMaps, named('slow').metadata, { signal: caller.signal });
    caller.abort(new Error('changed my mind'));
    await expect(aborted).rejects.toThrow(RequestAborted);
    await expect(aborted).rejects.toThrow(/slow": changed my mind/);
    fault.remove();
  });

  it('a list whose place the server forgot begins anew and gives each object once', async () => {
    const labels = { set: 'forgotten' };
    const names = Array.from({ length: 6 }, (_, n) => `forgotten-${n}`);
    await Promise.all(names.map((name) => admin.create(secrets, { metadata: { name, namespace, labels } })));
    proxy.inject({
      kind: 'status',
      code: 410,
      reason: 'Expired',
      times: 1,
      where: ({ query }) => query.has('continue'),
    });
    const found: string[] = [];
    for await (const { metadata } of client.listAll(secrets, {
      namespace,
      limit: 2,
      labelSelector: 'set=forgotten',
    }))
      found.push(metadata.name);
    expect(found.toSorted()).toEqual(names);
  });

  it('Gone, as an answer and as an event of a watch', async () => {
    proxy.inject({ kind: 'status', code: 410, reason: 'Expired', times: 1, path: /secrets$/ });
    await expect(client.list(secrets, { namespace, resourceVersion: '1' })).rejects.toThrow(Gone);
    proxy.inject({ kind: 'watch-gone', times: 1 });
    for await (const event of client.watch(secrets, { namespace, resourceVersion: '1' }))
      expect(event).toMatchObject({ type: 'ERROR', object: { code: 410 } });
  });

  it('errors of proxies in between are errors, too', async () => {
    proxy.inject({ kind: 'status', code: 502, message: 'bad gateway', path: /gateway/, times: 5 });
    const error: unknown = await client
      .get(configMaps, named('gateway').metadata)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).not.toBeInstanceOf(Gone);
  });
});

describe('credentials', () => {
  it('a kubeconfig leads to the cluster', async () => {
    const access = await connectionFromKubeconfig({ path: cluster.kubeconfig });
    await using connection = openConnection(access);
    expect(await new KubeClient(connection).list(namespaces, { limit: 1 })).toBeDefined();
  });

  it('an exec plugin of a kubeconfig gives the token', async () => {
    await using dir = await temporaryDirectory();
    const account = { namespace, name: 'plugged' };
    await createServiceAccount(admin, account, { clusterRole: 'view' });
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: await requestToken(admin, account) },
    };
    await writeFile(join(dir.path, 'credential.json'), JSON.stringify(credential));
    const { server, ca } = inject('cluster');
    const path = join(dir.path, 'config');
    const config = {
      clusters: [
        { name: 'c', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } },
      ],
      users: [{ name: 'u', user: { exec: { command: 'cat', args: [join(dir.path, 'credential.json')] } } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    };
    await writeFile(path, JSON.stringify(config));
    await using connection = openConnection(await connectionFromKubeconfig({ path }));
    await expect(new KubeClient(connection).list(pods, { namespace })).resolves.toBeDefined();
    await expect(new KubeClient(connection).list(secrets, { namespace })).rejects.toThrow(
      /plugged" cannot list/,
    );
  });

  it('an HTTP proxy on the way is used', async () => {
    const tunnels: string[] = [];
    const proxy = createServer().on('connect', (request, client: Socket, head) => {
      tunnels.push(request.url ?? '');
      const { hostname, port } = new URL(`http://${request.url}`);
      const upstream = connect(Number(port), hostname, () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n');
        upstream.write(head);
        upstream.pipe(client).pipe(upstream);
      });
      client.on('error', () => upstream.destroy());
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    onTestFinished(() => void proxy.close());
    const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const access = await connectionFromKubeconfig({ path: cluster.kubeconfig });
    await using connection = openConnection({ ...access, proxyUrl });
    const client = new KubeClient(connection);
    for (let n = 0; n < 5; n++) await client.list(namespaces, { limit: 1 });
    expect(new Set(tunnels)).toEqual(new Set([new URL(access.server).host]));
    // Kept open, not made for each call.
    expect(tunnels.length).toBeLessThan(5);
  });

  it('a token that ended is replaced by the one in the file, within one call', async () => {
    await using dir = await temporaryDirectory();
    const tokenFile = join(dir.path, 'token');
    const account = { namespace, name: 'rotated' };
    await createServiceAccount(admin, account, { clusterRole: 'view' });
    const bound = await admin.create(secrets, named('token-life'));
    const life = { apiVersion: 'v1', kind: 'Secret', name: 'token-life', uid: bound.metadata.uid };
    await writeFile(tokenFile, await requestToken(admin, account, life));
    await using connection = openConnection({
      server: inject('cluster').server,
      ca: inject('cluster').ca,
      tokenFile,
    });
    const client = new KubeClient(connection);
    await client.list(pods, { namespace });
    await admin.delete(secrets, bound.metadata);
    // The server caches its verdict on a token for some seconds.
    await expect
      .poll(
        () =>
          client.list(pods, { namespace }).then(
            () => undefined,
            (error: unknown) => (error as Error).name,
          ),
        {
          timeout: 20_000,
        },
      )
      .toBe('Unauthorized');
    await writeFile(tokenFile, await requestToken(admin, account));
    await expect(client.list(pods, { namespace })).resolves.toBeDefined();
  });

  it('several clusters side by side share nothing', async () => {
    const access = await connectionFromKubeconfig({ path: cluster.kubeconfig });
    const first = openConnection(access);
    await using second = openConnection(access);
    const clients = [first, second].map((connection) => new KubeClient(connection));
    await Promise.all(clients.map((client) => client.list(namespaces, { limit: 1 })));
    await first.close();
    await expect(clients[0]?.list(namespaces, { retry: false })).rejects.toThrow(ConnectionError);
    await expect(clients[1]?.list(namespaces, { limit: 1 })).resolves.toBeDefined();
  });
});

it('a kind that nobody has is not found', async () => {
  const unknown = defineResource('example.org/v1', 'Thing', 'things', 'Namespaced');
  await expect(admin.list(unknown, { namespace })).rejects.toThrow(NotFound);
});
