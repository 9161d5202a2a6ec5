/**
 * One informer in a process of its own, so that the memory is nobody else's:
 * syncs a kind, and prints what that took. The parent gives the connection.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { KubeClient } from '../../src/kube/client.ts';
import { type ConnectionOptions, openConnection } from '../../src/kube/connection.ts';
import { Informer } from '../../src/kube/informer.ts';
import type { ResourceType } from '../../src/kube/resource-type.ts';

export interface SyncTask {
  readonly connection: ConnectionOptions;
  readonly type: ResourceType;
  readonly streamLists: boolean;
}

export interface SyncResult {
  readonly ms: number;
  readonly objects: number;
  /** What the process grew by at most, and to, in MB. */
  readonly peakMb: number;
  readonly heapMb: number;
  readonly longestStallMs: number;
}

const MB = 2 ** 20;
const SAMPLE_MS = 5;

async function sync({ connection, type, streamLists }: SyncTask): Promise<SyncResult> {
  await using open = openConnection(connection);
  const client = new KubeClient(open);
  await client.list(type, { limit: 1 });
  globalThis.gc?.();
  const before = process.memoryUsage();
  let peak = before.rss;
  const sampling = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), SAMPLE_MS);
  const stalls = monitorEventLoopDelay({ resolution: 1 });
  stalls.enable();
  const informer = new Informer({ client, type, streamLists, freeze: false });
  const began = performance.now();
  await informer.start().synced;
  const ms = performance.now() - began;
  await delay(SAMPLE_MS * 2);
  stalls.disable();
  clearInterval(sampling);
  globalThis.gc?.();
  const { heapUsed } = process.memoryUsage();
  const { objects } = informer.health;
  await informer.stop();
  return {
    ms,
    objects,
    peakMb: (peak - before.rss) / MB,
    heapMb: (heapUsed - before.heapUsed) / MB,
    longestStallMs: stalls.max / 1e6,
  };
}

process.once('message', (task: SyncTask) => {
  void sync(task).then((result) => {
    process.send?.(result);
    process.disconnect();
  });
});
