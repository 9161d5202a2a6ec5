/** What objects cost that nobody works on: calls, memory, time to start, and whether tasks of others notice. */
import { setTimeout as delay } from 'node:timers/promises';
import { chain } from '../fixtures/chain/chain.ts';
import { callsSoFar, countOf } from './api-requests.ts';
import type { Row } from './bench.ts';
import { type EngineLab, NAMESPACE } from './engine-lab.ts';
import { MeasuredOperator } from './engine-operator.ts';

const PROMISED = { residentMb: 250, startMs: 10_000, flatness: 1.2 };
const FEW = 1_000;
const MANY = 10_000;
/** Makes an object about 3 KB large. */
const BALLAST = 'x'.repeat(2_000);
const RECONCILES = 'controller_runtime_reconcile_total';
const QUIET_MS = 1_000;

/** Calls in a while in which nothing happens. */
export async function atRest(lab: EngineLab, ms: number): Promise<Row[]> {
  await untilEventsAreOut(lab);
  const before = await callsSoFar(lab.admin);
  await delay(ms);
  const after = await callsSoFar(lab.admin);
  const calls = (resource: string): number => countOf(after, { resource }) - countOf(before, { resource });
  return [
    {
      what: `calls for objects at rest in ${ms / 1_000} s`,
      value: calls(chain.plural) + calls('events'),
      unit: 'calls',
      atMost: 0,
      key: 'idleObjectCalls',
    },
    {
      what: `calls for leases in ${ms / 1_000} s`,
      value: calls('leases'),
      unit: 'calls',
      key: 'idleLeaseCalls',
    },
  ];
}

/** Events are sent slowly, and are no cost of rest. */
async function untilEventsAreOut({ admin }: EngineLab): Promise<void> {
  const sent = async (): Promise<number> => countOf(await callsSoFar(admin), { resource: 'events' });
  for (let before = -1, now = await sent(); now !== before; before = now, now = await sent())
    await delay(QUIET_MS);
}

/** `cpuMsPerTask` runs flows beside the objects at rest. */
export async function manyObjects(
  lab: EngineLab,
  workers: number,
  cpuMsPerTask: (operator: MeasuredOperator, label: string) => Promise<number>,
): Promise<Row[]> {
  const few = await measureBeside(lab, workers, FEW, cpuMsPerTask);
  const many = await measureBeside(lab, workers, MANY, cpuMsPerTask);
  return [
    {
      what: `start to first reconcile of ${MANY} objects`,
      value: many.startMs,
      unit: 'ms',
      atMost: PROMISED.startMs,
      key: 'startMs',
    },
    {
      what: `memory of the operator with ${MANY} objects of 3 KB at rest`,
      value: many.residentMb,
      unit: 'MB',
      atMost: PROMISED.residentMb,
      key: 'residentMb',
    },
    { what: `CPU per task beside ${FEW} objects`, value: few.cpuMs, unit: 'ms', key: 'cpuMsPerTaskFew' },
    { what: `CPU per task beside ${MANY} objects`, value: many.cpuMs, unit: 'ms', key: 'cpuMsPerTaskMany' },
    {
      what: `CPU per task, ${MANY} / ${FEW} objects`,
      value: many.cpuMs / few.cpuMs,
      unit: 'x',
      atMost: PROMISED.flatness,
      key: 'flatness',
    },
  ];
}

interface Beside {
  readonly startMs: number;
  readonly residentMb: number;
  readonly cpuMs: number;
}

async function measureBeside(
  lab: EngineLab,
  workers: number,
  count: number,
  cpuMsPerTask: (operator: MeasuredOperator, label: string) => Promise<number>,
): Promise<Beside> {
  const missing = count - (await countAll(lab));
  const names = Array.from({ length: Math.max(0, missing) }, (_, at) => `resting-${count}-${at}`);
  await lab.createMany(NAMESPACE, names, { length: 0, ballast: BALLAST });
  {
    // Gives the new ones their first status.
    await using first = await MeasuredOperator.start(lab.access, NAMESPACE, workers);
    await first.untilCounted(RECONCILES, count);
  }
  await using operator = await MeasuredOperator.start(lab.access, NAMESPACE, workers);
  await operator.untilCounted(RECONCILES, count);
  const startMs = performance.now() - operator.startedAt;
  await delay(QUIET_MS);
  const residentMb = await operator.residentMb();
  return { startMs, residentMb, cpuMs: await cpuMsPerTask(operator, `beside-${count}`) };
}

async function countAll({ admin }: EngineLab): Promise<number> {
  let count = 0;
  for await (const _ of admin.listAll(chain, { namespace: NAMESPACE })) count++;
  return count;
}
