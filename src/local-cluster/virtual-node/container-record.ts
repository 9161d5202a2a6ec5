/**
 * What is known of one container of a Pod: its present state, the one before,
 * and when it may start again. Owned by the Pod's runner; everything that
 * decides on records (plan, phase, conditions) only reads them.
 */
import type { Pod } from '../../kube/builtin-resources.ts';
import {
  type Container,
  containersOf,
  isProcessImage,
  type PodContainer,
  type PodSpec,
  type Role,
  specOf,
} from './pod-spec.ts';

export type ContainerState =
  | { readonly kind: 'waiting'; readonly reason: string; readonly message?: string | undefined }
  | { readonly kind: 'running'; readonly startedAt: number }
  | Terminated;

export interface Terminated {
  readonly kind: 'terminated';
  readonly exitCode: number;
  readonly reason: string;
  readonly message?: string | undefined;
  readonly startedAt: number;
  readonly finishedAt: number;
}

export interface ContainerRecord {
  readonly name: string;
  readonly role: Role;
  state: ContainerState;
  /** How the run before the present state ended. */
  last: Terminated | undefined;
  /** `restartCount`: the number of the present (or latest) run, from 0. */
  run: number;
  /** Ends in a row that led to a restart; they lengthen the back-off. */
  endings: number;
  /** Epoch milliseconds before which it is not started. */
  notBefore: number;
  /** Its startup probe has passed. */
  started: boolean;
  /** Its readiness probe passes. */
  ready: boolean;
}

type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];
type ApiState = NonNullable<ContainerStatus['state']>;

export function newRecord(
  { container, role }: PodContainer,
  spec: PodSpec,
  notBefore: number,
): ContainerRecord {
  const reason = (spec.initContainers ?? []).length > 0 ? 'PodInitializing' : 'ContainerCreating';
  return {
    name: container.name,
    role,
    state: { kind: 'waiting', reason },
    last: undefined,
    run: 0,
    endings: 0,
    notBefore,
    started: false,
    ready: false,
  };
}

export function hasRun(record: ContainerRecord): boolean {
  return record.state.kind !== 'waiting' || record.last !== undefined;
}

/** A new run; the end of the one before is kept for `lastState`. */
export function beginRun(record: ContainerRecord, now: number): void {
  if (hasRun(record)) record.run++;
  if (record.state.kind === 'terminated') record.last = record.state;
  record.state = { kind: 'running', startedAt: now };
}

export function wait(record: ContainerRecord, reason: string, message?: string): void {
  if (record.state.kind === 'terminated') record.last = record.state;
  record.state = { kind: 'waiting', reason, message };
}

/**
 * The records of a Pod that an earlier life of the node has run. Its processes
 * are gone: as after a reboot of a real node, what was running has ended in an
 * unknown way. Containers that were only pretended to run go on.
 * `runsBegun` tells how many runs have left a trace on disk: one more than the
 * status knows of means that we died between the start and the status.
 */
export function recoverRecords(
  pod: Pod,
  runsBegun: (container: string) => number,
  now: number,
): ContainerRecord[] {
  const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  const spec = specOf(pod);
  const records = containersOf(spec).map((part) => {
    const status = statuses.find(({ name }) => name === part.container.name);
    return recover(newRecord(part, spec, 0), part.container, status, runsBegun(part.container.name), now);
  });
  if (records.some(({ role, state }) => role === 'main' && state.kind !== 'running')) rerunInit(records);
  return records;
}

function recover(
  record: ContainerRecord,
  container: Container,
  status: ContainerStatus | undefined,
  runsBegun: number,
  now: number,
): ContainerRecord {
  if (status) {
    record.run = status.restartCount;
    record.last = terminated(status.lastState, now);
    record.state = terminated(status.state, now) ?? running(status.state, now) ?? record.state;
  }
  const known = hasRun(record) ? record.run + 1 : 0;
  if (isProcessImage(container.image)) {
    if (record.state.kind === 'running') record.state = lostRun(record.state.startedAt, now);
    if (runsBegun > known) {
      if (record.state.kind === 'terminated') record.last = record.state;
      record.state = lostRun(now, now);
      record.run = runsBegun - 1;
    }
  }
  return record;
}

/** Main containers that start anew find the work of the init containers done anew, as on a rebooted node. */
function rerunInit(records: readonly ContainerRecord[]): void {
  for (const record of records)
    if (record.role === 'init' && record.state.kind === 'terminated' && record.state.exitCode === 0)
      wait(record, 'PodInitializing');
}

function lostRun(startedAt: number, now: number): Terminated {
  return {
    kind: 'terminated',
    exitCode: 137,
    reason: 'ContainerStatusUnknown',
    message: 'The process was gone when the virtual node started again',
    startedAt,
    finishedAt: now,
  };
}

function terminated(state: ApiState | undefined, now: number): Terminated | undefined {
  if (!state?.terminated) return undefined;
  const { exitCode, reason = '', message, startedAt, finishedAt } = state.terminated;
  return {
    kind: 'terminated',
    exitCode,
    reason,
    message,
    startedAt: timeOr(startedAt, now),
    finishedAt: timeOr(finishedAt, now),
  };
}

function running(state: ApiState | undefined, now: number): ContainerState | undefined {
  return state?.running && { kind: 'running', startedAt: timeOr(state.running.startedAt, now) };
}

function timeOr(text: string | undefined, fallback: number): number {
  return text === undefined ? fallback : Date.parse(text);
}
