/** How long the local control plane takes to be ready, and to be gone. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findBinaries } from '../../src/local-cluster/binaries/find-binaries.ts';
import { startControlPlane } from '../../src/local-cluster/control-plane.ts';
import { type Bench, median, type Row } from './bench.ts';

const READY_LIMIT_MS: Readonly<Record<number, number>> = { 1: 5_000, 3: 10_000 };
const STOP_LIMIT_MS = 3_000;

export const startStop: Bench = {
  name: 'start-stop',
  async run({ short }) {
    const rounds = short ? 1 : 5;
    const one = await measure(1, rounds);
    const three = await measure(3, rounds);
    return [
      ...rows(1, one),
      ...rows(3, three),
      { what: 'ready, 3 clusters to 1', value: three.ready / one.ready, unit: 'x' },
    ];
  },
};

interface Times {
  readonly ready: number;
  readonly stopped: number;
}

async function measure(clusters: number, rounds: number): Promise<Times> {
  const binaries = await findBinaries();
  const ready: number[] = [];
  const stopped: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const dir = await mkdtemp(join(tmpdir(), 'taskflow-bench-'));
    const plane = await startControlPlane({ dir, clusters, binaries, durable: false, ephemeral: true });
    ready.push(plane.startedInMs);
    const began = performance.now();
    await plane.stop();
    stopped.push(performance.now() - began);
  }
  return { ready: median(ready), stopped: median(stopped) };
}

function rows(clusters: number, { ready, stopped }: Times): Row[] {
  const name = clusters === 1 ? '1 cluster' : `${clusters} clusters`;
  const readyLimit = READY_LIMIT_MS[clusters];
  return [
    {
      what: `ready, ${name}`,
      value: ready,
      unit: 'ms',
      ...(readyLimit !== undefined && { atMost: readyLimit }),
    },
    { what: `stopped, ${name}`, value: stopped, unit: 'ms', atMost: STOP_LIMIT_MS },
  ];
}
