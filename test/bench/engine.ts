/**
 * What the engine adds to the writes that a flow consists of. The measure is a
 * bare loop that repeats those very writes on objects of the same kind, under
 * the same identity, on the same API server; both in turns, so that a busy
 * moment hits both. Beside that, how many status writes a task takes, and what
 * objects at rest cost.
 */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startControlPlane } from '../../src/local-cluster/control-plane.ts';
import { chain } from '../fixtures/chain/chain.ts';
import { barePatch, inParallel, type PatchStatus } from './bare-patch.ts';
import { type Bench, median, type Row } from './bench.ts';
import { atRest, manyObjects } from './engine-at-rest.ts';
import { BARE_NAMESPACE, EngineLab, NAMESPACE } from './engine-lab.ts';
import { MeasuredOperator } from './engine-operator.ts';

const PROMISED = { stepRatio: 1.5, throughputRatio: 0.7, extraWritesPerFlow: 2 };
const FLOWS_ENDED = 'taskflow_flow_total';

export const engine: Bench = {
  name: 'engine',
  async run({ short, full }) {
    const dir = await mkdtemp(join(tmpdir(), 'taskflow-bench-'));
    const plane = { dir, durable: false, ephemeral: true, controllerManager: false, virtualNode: false };
    await using started = await startControlPlane(plane);
    const lab = await EngineLab.prepare(started.clusters[0]);
    const workers = Number(process.env['TASKFLOW_BENCH_WORKERS'] ?? 4);
    const rounds = short ? 1 : 3;
    const load = { objects: short ? 20 : 200, tasks: 10, inFlight: workers, rounds };
    const rows: Row[] = [];
    {
      await using operator = await MeasuredOperator.start(lab.access, NAMESPACE, workers);
      rows.push(...(await stepRows(lab, { tasks: short ? 20 : 100, rounds })));
      rows.push(...throughputRows(await throughput(lab, operator, load), load));
      rows.push(...(await atRest(lab, short ? 1_000 : 8_000)));
    }
    if (full)
      rows.push(
        ...(await manyObjects(lab, workers, async (operator, label) => {
          const { cpuMsPerTask } = await flowRound(lab, operator, load, label);
          return cpuMsPerTask;
        })),
      );
    return rows;
  },
};

// One object, one step after the other.

async function stepRows(
  lab: EngineLab,
  { tasks, rounds }: { tasks: number; rounds: number },
): Promise<Row[]> {
  const ours: number[] = [];
  const bare: number[] = [];
  const smallest: number[] = [];
  await using bareLoop = barePatch(lab.identity, chain, BARE_NAMESPACE);
  const small = Array.from({ length: tasks }, (_, at) => ({ status: `step ${at}` }));
  // The first round warms up both sides.
  for (let round = 0; round <= rounds; round++) {
    const { patches, stepMs } = await lab.runFlow(`single-${round}`, tasks);
    await lab.createMany(BARE_NAMESPACE, [`single-${round}`, `small-${round}`], { length: 0 });
    const bareMs = await timesOf(bareLoop.patch, `single-${round}`, patches);
    const smallMs = await timesOf(bareLoop.patch, `small-${round}`, small);
    if (round === 0) continue;
    ours.push(...stepMs);
    bare.push(...bareMs);
    smallest.push(...smallMs);
  }
  const step = median(ours);
  const patch = median(bare);
  return [
    { what: `one step of a flow of ${tasks} tasks, median`, value: step, unit: 'ms', key: 'stepMs' },
    { what: 'the same writes by a bare loop, median', value: patch, unit: 'ms', key: 'barePatchMs' },
    {
      what: 'the smallest bare status PATCH, median',
      value: median(smallest),
      unit: 'ms',
      key: 'smallPatchMs',
    },
    {
      what: 'step / bare PATCH',
      value: step / patch,
      unit: 'x',
      atMost: PROMISED.stepRatio,
      key: 'stepRatio',
    },
  ];
}

async function timesOf(patch: PatchStatus, name: string, patches: readonly object[]): Promise<number[]> {
  const times: number[] = [];
  for (const status of patches) {
    const began = performance.now();
    await patch(name, status);
    times.push(performance.now() - began);
  }
  return times;
}

// Many objects at once.

interface Load {
  readonly objects: number;
  readonly tasks: number;
  readonly inFlight: number;
  readonly rounds: number;
}

interface FlowRound {
  readonly tasksPerSecond: number;
  readonly cpuMsPerTask: number;
  readonly writesPerFlow: number;
}

interface Round extends FlowRound {
  readonly barePerSecond: number;
}

async function throughput(lab: EngineLab, operator: MeasuredOperator, load: Load): Promise<Round[]> {
  const rounds: Round[] = [];
  const { patches } = await lab.runFlow('pattern', load.tasks);
  await using bareLoop = barePatch(lab.identity, chain, BARE_NAMESPACE);
  for (let round = 0; round < load.rounds; round++) {
    const targets = namesOf(`bare-${round}`, load.objects);
    await lab.createMany(BARE_NAMESPACE, targets, { length: 0 });
    const barePerSecond = await repeatOnAll(bareLoop.patch, targets, patches, load.inFlight);
    rounds.push({ barePerSecond, ...(await flowRound(lab, operator, load, `round-${round}`)) });
  }
  return rounds;
}

function namesOf(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}-${at}`);
}

/** PATCHes per second; so many objects at once, on each one after the other. */
async function repeatOnAll(
  patch: PatchStatus,
  targets: readonly string[],
  patches: readonly object[],
  inFlight: number,
): Promise<number> {
  const began = performance.now();
  await inParallel(targets.length, inFlight, async (at) => {
    for (const status of patches) await patch(targets[at] ?? '', status);
  });
  return (targets.length * patches.length * 1_000) / (performance.now() - began);
}

async function flowRound(
  lab: EngineLab,
  operator: MeasuredOperator,
  { objects, tasks }: Load,
  label: string,
): Promise<FlowRound> {
  const names = namesOf(label, objects);
  const ended = await operator.counter(FLOWS_ENDED);
  const writes = await lab.statusWrites();
  const cpuMs = await operator.cpuMs();
  await lab.createMany(NAMESPACE, names, { length: tasks });
  await operator.untilCounted(FLOWS_ENDED, ended + objects);
  return {
    cpuMsPerTask: ((await operator.cpuMs()) - cpuMs) / (objects * tasks),
    writesPerFlow: ((await lab.statusWrites()) - writes) / objects,
    tasksPerSecond: (objects * tasks) / (await lab.secondsOfFlows(names)),
  };
}

function throughputRows(rounds: readonly Round[], { objects, tasks, inFlight }: Load): Row[] {
  const of = (figure: (round: Round) => number): number => median(rounds.map(figure));
  const writes = of(({ writesPerFlow }) => writesPerFlow);
  return [
    {
      what: `${objects} objects x ${tasks} tasks, ${inFlight} reconciles at once`,
      value: of(({ tasksPerSecond }) => tasksPerSecond),
      unit: '/s',
      key: 'tasksPerSecond',
    },
    {
      what: `the same writes by a bare loop, ${inFlight} in flight`,
      value: of(({ barePerSecond }) => barePerSecond),
      unit: '/s',
      key: 'barePatchesPerSecond',
    },
    {
      what: 'tasks / bare PATCHes per second',
      value: of(({ tasksPerSecond, barePerSecond }) => tasksPerSecond / barePerSecond),
      unit: 'x',
      atLeast: PROMISED.throughputRatio,
      key: 'throughputRatio',
    },
    {
      what: 'CPU of the operator per task',
      value: of(({ cpuMsPerTask }) => cpuMsPerTask),
      unit: 'ms',
      key: 'cpuMsPerTask',
    },
    {
      what: `status writes per flow of ${tasks} tasks`,
      value: writes,
      unit: 'calls',
      atMost: tasks + PROMISED.extraWritesPerFlow,
      key: 'statusWritesPerFlow',
    },
    { what: 'status writes per task', value: writes / tasks, unit: 'calls', key: 'statusWritesPerTask' },
  ];
}
