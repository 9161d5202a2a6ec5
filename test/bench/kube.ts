/**
 * What the kube layer adds to bare HTTP, and what its cache costs: status
 * PATCHes against a bare undici loop in the same run (both in turns, so that
 * a busy moment hits both), the way of an event to a handler, and the first
 * sync of ten thousand objects in a process of its own.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeClient } from '../../src/kube/client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { defineResource, type KubeObject, objectKey, type Stored } from '../../src/kube/resource-type.ts';
import type { Cluster } from '../../src/local-cluster/cluster.ts';
import { startControlPlane } from '../../src/local-cluster/control-plane.ts';
import { barePatch, inParallel, type PatchStatus } from './bare-patch.ts';
import { type Bench, median, type Row } from './bench.ts';
import type { SyncResult, SyncTask } from './kube-sync.ts';

interface Sample extends KubeObject {
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
}

const samples = defineResource<Sample>('bench.taskflow.dev/v1', 'Sample', 'samples', 'Namespaced');
const crds = defineResource(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  'Cluster',
);
const NAMESPACE = 'default';
const IN_FLIGHT = 32;
const TARGETS = 200;
/** A bare loop may be so much faster, or use so much less CPU: our promise of 0.8. */
const LIMIT = { overhead: 1.25, syncMs: 5_000, syncMb: 120 };

export const kube: Bench = {
  name: 'kube',
  async run({ short }) {
    const dir = await mkdtemp(join(tmpdir(), 'taskflow-bench-'));
    await using plane = await startControlPlane({
      dir,
      durable: false,
      ephemeral: true,
      controllerManager: false,
      virtualNode: false,
    });
    const [cluster] = plane.clusters;
    await defineSamples(cluster.admin);
    const objects = await createMany(cluster.admin, TARGETS, () => ({ spec: { size: 1 } }), 'target');
    const latency = await watchLatency(cluster.admin, objects, short ? 100 : 1_000);
    const sequential = await compare(cluster, objects, { requests: short ? 50 : 500, inFlight: 1 });
    const parallel = await compare(cluster, objects, { requests: short ? 500 : 3_000, inFlight: IN_FLIGHT });
    const count = short ? 1_000 : 10_000;
    await createMany(cluster.admin, count - TARGETS, largeObject, 'large');
    const task = { connection: cluster.connectionOf(cluster.adminKeys), type: samples };
    const streamed = await syncInChild({ ...task, streamLists: true });
    const paged = await syncInChild({ ...task, streamLists: false });
    return [
      ...overhead('status PATCH one by one', sequential),
      ...overhead(`status PATCH ${IN_FLIGHT} in flight`, parallel),
      { what: 'event to handler after its PATCH was sent, p50', value: latency.p50, unit: 'ms' },
      { what: 'event to handler after its PATCH was sent, p95', value: latency.p95, unit: 'ms' },
      ...syncRows(`${count} objects streamed`, streamed),
      ...syncRows(`${count} objects paged`, paged),
    ];
  },
};

async function defineSamples(client: KubeClient): Promise<void> {
  const schema = {
    type: 'object',
    properties: {
      spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  };
  const crd: KubeObject & { spec: object } = {
    metadata: { name: 'samples.bench.taskflow.dev' },
    spec: {
      group: 'bench.taskflow.dev',
      names: { kind: 'Sample', listKind: 'SampleList', plural: 'samples', singular: 'sample' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          subresources: { status: {} },
        },
      ],
    },
  };
  await client.create(crds, crd);
  // Its objects can be listed when the informer of a reflector has synced.
  const informer = new Informer({
    client,
    type: samples,
    timing: { slowBackoff: { firstMs: 100, maxMs: 200 } },
  }).start();
  await informer.synced;
  await informer.stop();
}

/** About 3 KB as it is stored, written by two managers as real objects are. */
function largeObject(at: number): Partial<Sample> {
  const entry = (n: number): object => ({
    name: `member-${n}`,
    address: `10.${at % 250}.${n}.1:2881`,
    state: 'running',
    zone: `zone-${n % 3}`,
    resources: { cpu: '4', memory: '16Gi', storage: { data: '100Gi', log: '50Gi' } },
    note: `object ${at}, entry ${n}: ${'lorem ipsum '.repeat(4)}`,
  });
  return { spec: { replicas: 3, members: Array.from({ length: 10 }, (_, n) => entry(n)) } };
}

async function createMany(
  client: KubeClient,
  count: number,
  body: (at: number) => Partial<Sample>,
  prefix: string,
): Promise<Stored<Sample>[]> {
  const made: Stored<Sample>[] = [];
  await inParallel(count, IN_FLIGHT, async (at) => {
    const metadata = {
      name: `${prefix}-${at}`,
      namespace: NAMESPACE,
      labels: { app: prefix, shard: String(at % 16) },
    };
    made.push(await client.create(samples, { metadata, ...body(at) }, { fieldManager: 'bench' }));
  });
  return made;
}

interface Load {
  readonly requests: number;
  readonly inFlight: number;
}
interface Cost {
  readonly perSecond: number;
  readonly cpuMs: number;
}
interface Comparison {
  readonly ours: Cost;
  readonly bare: Cost;
}

/** Both in turns; of each the median round. */
async function compare(
  cluster: Cluster,
  objects: readonly Stored<Sample>[],
  load: Load,
): Promise<Comparison> {
  const rounds = 5;
  await using bareLoop = barePatch(cluster.connectionOf(cluster.adminKeys), samples, NAMESPACE);
  const bare = bareLoop.patch;
  const ours: PatchStatus = (name, status) =>
    cluster.admin.patch(
      samples,
      { name, namespace: NAMESPACE },
      { kind: 'merge', body: { status } },
      { subresource: 'status', fieldManager: 'bench' },
    );
  const costs: { ours: Cost[]; bare: Cost[] } = { ours: [], bare: [] };
  const warmUp = { ...load, requests: Math.ceil(load.requests / 5) };
  await measure(bare, objects, warmUp);
  await measure(ours, objects, warmUp);
  for (let round = 0; round < rounds; round++) {
    costs.bare.push(await measure(bare, objects, load));
    costs.ours.push(await measure(ours, objects, load));
  }
  return { ours: medianCost(costs.ours), bare: medianCost(costs.bare) };
}

function medianCost(costs: readonly Cost[]): Cost {
  return {
    perSecond: median(costs.map(({ perSecond }) => perSecond)),
    cpuMs: median(costs.map(({ cpuMs }) => cpuMs)),
  };
}

async function measure(patch: PatchStatus, objects: readonly Stored<Sample>[], load: Load): Promise<Cost> {
  const began = performance.now();
  const cpu = process.cpuUsage();
  await inParallel(load.requests, load.inFlight, async (at) => {
    const name = objects[at % objects.length]?.metadata.name ?? '';
    await patch(name, { step: at, at: performance.now() });
  });
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: load.requests / ((performance.now() - began) / 1_000),
    cpuMs: (user + system) / 1_000 / load.requests,
  };
}

async function watchLatency(
  client: KubeClient,
  objects: readonly Stored<Sample>[],
  count: number,
): Promise<{ p50: number; p95: number }> {
  const sentAt = new Map<string, number>();
  const latencies: number[] = [];
  let arrived = (): void => {};
  const informer = new Informer({ client, type: samples, freeze: false }).start();
  await informer.synced;
  informer.subscribe(({ object, origin }) => {
    const sent = sentAt.get(objectKey(object.metadata));
    if (origin !== 'watch' || sent === undefined) return;
    latencies.push(performance.now() - sent);
    arrived();
  });
  for (let at = 0; at < count; at++) {
    const { name, namespace } = objects[at % objects.length]?.metadata ?? { name: '' };
    const event = new Promise<void>((resolve) => (arrived = resolve));
    sentAt.clear();
    sentAt.set(objectKey({ name, namespace }), performance.now());
    const body = { status: { latency: at } };
    await Promise.all([
      event,
      client.patch(samples, { name, namespace }, { kind: 'merge', body }, { subresource: 'status' }),
    ]);
  }
  await informer.stop();
  const sorted = latencies.toSorted((a, b) => a - b);
  return { p50: median(sorted), p95: sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN };
}

async function syncInChild(task: SyncTask): Promise<SyncResult> {
  const child = fork(join(import.meta.dirname, 'kube-sync.ts'), [], { execArgv: ['--expose-gc'] });
  const exited = once(child, 'exit');
  child.send(task);
  const [result] = (await Promise.race([
    once(child, 'message'),
    exited.then(([code]) => Promise.reject(new Error(`the syncing process ended with ${String(code)}`))),
  ])) as [SyncResult];
  await exited;
  return result;
}

function overhead(what: string, { ours, bare }: Comparison): Row[] {
  const speed = `${Math.round(ours.perSecond)}/s, bare undici ${Math.round(bare.perSecond)}/s`;
  const cpu = `${ours.cpuMs.toFixed(2)} ms CPU each, bare undici ${bare.cpuMs.toFixed(2)} ms`;
  return [
    { what: `${what}: ${speed}`, value: bare.perSecond / ours.perSecond, unit: 'x', atMost: LIMIT.overhead },
    { what: `${what}: ${cpu}`, value: ours.cpuMs / bare.cpuMs, unit: 'x', atMost: LIMIT.overhead },
  ];
}

function syncRows(what: string, { ms, objects, peakMb, heapMb, longestStallMs }: SyncResult): Row[] {
  return [
    { what: `${what}, synced`, value: ms, unit: 'ms', atMost: LIMIT.syncMs },
    { what: `${what}, longest stall of the event loop`, value: longestStallMs, unit: 'ms' },
    {
      what: `${what}, ${Math.round(peakMb)} MB more at the peak (${((heapMb * 1024) / objects).toFixed(1)} KB of heap each), of ${LIMIT.syncMb} MB`,
      value: peakMb / LIMIT.syncMb,
      unit: 'x',
      atMost: 1,
    },
  ];
}
