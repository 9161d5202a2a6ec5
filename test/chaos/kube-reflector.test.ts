/**
 * An informer behind a proxy that breaks what can break, while somebody keeps
 * writing. Afterwards its store must equal the server, handlers must have been
 * told a story that adds up to it, one watch must be open, and memory must be
 * where it was. TASKFLOW_CHAOS_SECONDS makes the long faults longer.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type ConfigMap, configMaps, namespaces, secrets } from '../../src/kube/builtin-resources.ts';
import type { Change } from '../../src/kube/change.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { type ConnectionOptions, openConnection } from '../../src/kube/connection.ts';
import { Unauthorized } from '../../src/kube/errors.ts';
import { Informer, type InformerOptions } from '../../src/kube/informer.ts';
import { objectKey } from '../../src/kube/resource-type.ts';
import { type ControlPlane, startControlPlane } from '../../src/local-cluster/control-plane.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { createServiceAccount, requestToken } from '../support/service-account.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const SECONDS = Number(process.env['TASKFLOW_CHAOS_SECONDS'] ?? 20);
const CONVERGED = { timeout: 40_000, interval: 100 };
const NAMES = 60;
/** More than a page. */
const STILL = 600;
const LEAK_MB = 20;

let plane: ControlPlane;
beforeAll(async () => {
  const dir = await temporaryDirectory();
  plane = await startControlPlane({ dir: dir.path, durable: false, ephemeral: true, virtualNode: false });
  return () => dir[Symbol.asyncDispose]();
});
afterAll(() => plane.stop());

/** What handlers would have, if they had kept all they were told; throws where the story does not add up. */
class Story {
  readonly versions = new Map<string, string>();

  tell({ type, object }: Change<ConfigMap>): void {
    const key = objectKey(object.metadata);
    const known = this.versions.has(key);
    if (known === (type === 'added'))
      throw new Error(`${key} was ${type}, but it was ${known ? '' : 'not '}there`);
    if (type === 'deleted') this.versions.delete(key);
    else this.versions.set(key, object.metadata.resourceVersion);
  }
}

/** Makes, changes and deletes objects until stopped; an API server that is away is no reason to end. */
class Writer {
  readonly #stopping = new AbortController();
  readonly #done: Promise<void>;
  writes = 0;

  constructor(client: KubeClient, namespace: string) {
    this.#done = this.#run(client, namespace);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#done;
  }

  async #run(client: KubeClient, namespace: string): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const ref = { namespace, name: `busy-${Math.floor(Math.random() * NAMES)}` };
      const body = { data: { n: String(this.writes) } };
      const write =
        Math.random() < 0.2
          ? client.delete(configMaps, ref, { retry: false })
          : client.apply(configMaps, { metadata: ref, ...body }, { fieldManager: 'writer', retry: false });
      await write.then(
        () => this.writes++,
        () => undefined,
      );
      await delay(5);
    }
  }
}

interface Scene {
  readonly namespace: string;
  readonly proxy: FaultProxy;
  readonly client: KubeClient;
  readonly informer: Informer<ConfigMap>;
  readonly errors: unknown[];
  /** Stops the writer, and checks that nothing was lost. */
  readonly expectConverged: () => Promise<void>;
}

async function scene(
  options: Partial<InformerOptions<ConfigMap>> & {
    readonly still?: number;
    readonly credentials?: Partial<ConnectionOptions>;
  } = {},
): Promise<Scene> {
  const { still = 20, credentials, ...informerOptions } = options;
  const [cluster] = plane.clusters;
  const namespace = `chaos-${Math.random().toString(16).slice(2, 8)}`;
  await cluster.admin.create(namespaces, { metadata: { name: namespace } });
  const account = { namespace, name: 'watcher' };
  await createServiceAccount(cluster.admin, account, { clusterRole: 'view' });
  await Promise.all(
    Array.from({ length: still }, (_, n) =>
      cluster.admin.create(configMaps, { metadata: { name: `still-${n}`, namespace } }),
    ),
  );
  const proxy = await startFaultProxy({ target: cluster });
  const token = credentials ? {} : { token: await requestToken(cluster.admin, account) };
  const connection = openConnection({ server: proxy.server, ca: proxy.ca, ...token, ...credentials });
  const client = new KubeClient(connection);
  const errors: unknown[] = [];
  const story = new Story();
  const informer = new Informer({
    client,
    type: configMaps,
    namespaces: [namespace],
    onError: (error) => errors.push(error),
    // Else the end of every test would wait for half a minute.
    timing: { backoff: { firstMs: 400, maxMs: 3_000 } },
    ...informerOptions,
  });
  informer.subscribe((change) => story.tell(change));
  const writer = new Writer(cluster.admin, namespace);
  onTestFinished(async () => {
    await writer.stop();
    await informer.stop();
    await connection.close();
    await proxy.stop();
  });
  await informer.start().synced;
  const heapBefore = heapMb();
  const expectConverged = async (): Promise<void> => {
    await vi.waitFor(() => expect(writer.writes).toBeGreaterThan(20), CONVERGED);
    await writer.stop();
    const onServer = await serverVersions(cluster.admin, namespace);
    await vi.waitFor(() => expect(versions(informer.values())).toEqual(onServer), CONVERGED);
    expect(Object.fromEntries(story.versions)).toEqual(onServer);
    await vi.waitFor(() => expect(informer.health.state).toBe('watching'), CONVERGED);
    await vi.waitFor(() => expect(proxy.openWatches).toBe(1));
    expect(informer.health).toMatchObject({ misses: 0, handlerErrors: 0 });
    expect(heapMb() - heapBefore).toBeLessThan(LEAK_MB);
    await informer.stop();
    await expect.poll(() => proxy.openWatches).toBe(0);
  };
  return { namespace, proxy, client, informer, errors, expectConverged };
}

type Versions = Record<string, string>;

function versions(
  objects: Iterable<{ metadata: { name: string; namespace?: string; resourceVersion: string } }>,
): Versions {
  const entries = [...objects].map(
    ({ metadata }) => [objectKey(metadata), metadata.resourceVersion] as const,
  );
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

async function serverVersions(client: KubeClient, namespace: string): Promise<Versions> {
  const objects = [];
  for await (const object of client.listAll(configMaps, { namespace })) objects.push(object);
  return versions(objects);
}

function heapMb(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

/** Repeats a fault for as long as the test is to last. */
async function forSeconds(seconds: number, everyMs: number, strike: () => void): Promise<void> {
  const end = performance.now() + seconds * 1_000;
  while (performance.now() < end) {
    strike();
    await delay(everyMs);
  }
}

describe('an informer', { timeout: 120_000 + SECONDS * 1_000 }, () => {
  it(`whose connections are cut every second for ${SECONDS} s`, async () => {
    const { proxy, informer, expectConverged } = await scene();
    let cut = 0;
    await forSeconds(SECONDS, 1_000, () => {
      cut += proxy.openConnections;
      proxy.dropConnections();
    });
    expect(cut).toBeGreaterThan(1);
    expect(informer.health.reconnects).toBeGreaterThan(1);
    await expectConverged();
  });

  it('whose watches end properly, but at once', async () => {
    const { proxy, informer, expectConverged } = await scene();
    const fault = proxy.inject({ kind: 'drop-watch', afterMs: 50, clean: true });
    proxy.dropWatches();
    const before = proxy.requests.length;
    await delay(5_000);
    // Backed off: not a loop that hammers the server.
    expect(proxy.requests.length - before).toBeLessThan(25);
    expect(fault.hits).toBeGreaterThan(2);
    expect(informer.health.relists).toBe(1);
    proxy.clear();
    await expectConverged();
  });

  it('whose sockets stay open and say nothing', async () => {
    const { proxy, informer, errors, expectConverged } = await scene({
      timing: { inactivityMs: 1_000, backoff: { firstMs: 400, maxMs: 3_000 } },
    });
    const watches = (): number => proxy.requests.filter(({ watch }) => watch).length;
    for (let round = 1; round <= 4; round++) {
      expect(proxy.silenceWatches()).toBe(1);
      const before = watches();
      await vi.waitFor(() => expect(watches()).toBe(before + 1), CONVERGED);
      await vi.waitFor(() => expect(informer.health.state).toBe('watching'), CONVERGED);
      await vi.waitFor(() => expect(proxy.openWatches).toBe(1), CONVERGED);
    }
    expect(informer.health.reconnects).toBe(4);
    // Silence is no error, only a reason to connect again.
    expect(errors).toEqual([]);
    // Now not even new connections are answered.
    proxy.pause();
    await vi.waitFor(() => expect(informer.health.reconnects).toBe(7), CONVERGED);
    proxy.resume();
    await expectConverged();
  });

  it('that is told that its version is too old, in the stream and on the next page', async () => {
    const { proxy, informer, expectConverged } = await scene({ still: STILL, streamLists: false });
    const inStream = proxy.inject({ kind: 'watch-gone', times: 3 });
    const onContinue = proxy.inject({
      kind: 'status',
      code: 410,
      reason: 'Expired',
      times: 2,
      where: ({ query }) => query.has('continue'),
    });
    proxy.dropWatches();
    await vi.waitFor(() => expect([inStream.hits, onContinue.hits]).toEqual([3, 2]), CONVERGED);
    await vi.waitFor(() => expect(informer.health.relists).toBe(4), CONVERGED);
    // The list after a 410 is consistent: it names no version.
    const lists = proxy.requests.filter(({ watch, path }) => !watch && path.endsWith('/configmaps'));
    expect(lists.filter(({ query }) => query.has('resourceVersion'))).toHaveLength(1);
    await expectConverged();
  });

  it('that is told so while lists are streamed, and whose streamed lists break', async () => {
    const { proxy, informer, expectConverged } = await scene({ still: STILL });
    proxy.inject({ kind: 'watch-gone', times: 1, where: ({ query }) => !query.has('sendInitialEvents') });
    const broken = proxy.inject({
      kind: 'drop-watch',
      afterEvents: 300,
      times: 2,
      where: ({ query }) => query.has('sendInitialEvents'),
    });
    proxy.dropWatches();
    await vi.waitFor(() => expect(broken.hits).toBe(2), CONVERGED);
    await vi.waitFor(() => expect(informer.health.relists).toBe(2), CONVERGED);
    await expectConverged();
  });

  it('in a storm of 429', async () => {
    const { proxy, informer, expectConverged } = await scene();
    const storm = proxy.inject({ kind: 'status', code: 429, retryAfterSeconds: 1 });
    proxy.dropWatches();
    const before = proxy.requests.length;
    await delay(5_500);
    // Retry-After was heeded.
    expect(proxy.requests.length - before).toBeLessThan(9);
    expect(storm.hits).toBeGreaterThan(2);
    expect(informer.health).toMatchObject({ state: 'backoff', lastError: { code: 429 } });
    proxy.clear();
    await expectConverged();
  });

  it('in a mix of errors, latency and resets', async () => {
    const { proxy, expectConverged } = await scene();
    proxy.inject({ kind: 'status', code: 500, probability: 0.3, seed: 1 });
    proxy.inject({ kind: 'reset', when: 'before', probability: 0.2, seed: 2 });
    proxy.inject({ kind: 'latency', ms: 300, probability: 0.5, seed: 3 });
    proxy.inject({ kind: 'drop-watch', afterEvents: 7, probability: 0.7, seed: 4 });
    await forSeconds(SECONDS / 2, 1_000, () => proxy.dropWatches());
    proxy.clear();
    await expectConverged();
  });

  it('whose API server is killed and comes back, twice', async () => {
    const { informer, expectConverged } = await scene();
    const [cluster] = plane.clusters;
    await cluster.restartApiServer();
    await vi.waitFor(() => expect(informer.health.state).toBe('watching'), CONVERGED);
    await cluster.restartApiServer();
    await expectConverged();
  });

  it('whose token ends and is replaced', async () => {
    await using dir = await temporaryDirectory();
    const [cluster] = plane.clusters;
    const tokenFile = join(dir.path, 'token');
    const account = { namespace: 'default', name: `rotated-${Math.random().toString(16).slice(2, 8)}` };
    await createServiceAccount(cluster.admin, account, { clusterRole: 'view' });
    const life = await cluster.admin.create(secrets, { metadata: { ...account } });
    const bound = { apiVersion: 'v1', kind: 'Secret', name: account.name, uid: life.metadata.uid };
    const first = await requestToken(cluster.admin, account, bound);
    await writeFile(tokenFile, first);
    const { proxy, informer, expectConverged } = await scene({ credentials: { tokenFile } });

    await cluster.admin.delete(secrets, life.metadata);
    await using probe = openConnection({ server: cluster.server, ca: cluster.ca, token: first });
    const refused = () =>
      new KubeClient(probe).list(namespaces, { limit: 1 }).catch((error: unknown) => error);
    // The server remembers its verdict on a token for ten seconds.
    await vi.waitFor(async () => expect(await refused()).toBeInstanceOf(Unauthorized), CONVERGED);
    proxy.dropConnections();
    await vi.waitFor(() => expect(informer.health.lastError).toBeInstanceOf(Unauthorized), CONVERGED);
    await writeFile(`${tokenFile}.new`, await requestToken(cluster.admin, account));
    await rename(`${tokenFile}.new`, tokenFile);
    await expectConverged();
  });
});
