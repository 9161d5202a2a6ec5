/** The next thing to do for a Pod, from what is known of its containers. Pure. */
import type { ContainerRecord } from './container-record.ts';
import { containersOf, type PodContainer, type PodSpec } from './pod-spec.ts';
import { restartsAfter } from './restart-policy.ts';

export interface Plan {
  readonly start: readonly PodContainer[];
  /** Init containers are through: main containers may run from now on. */
  readonly initialised: boolean;
  /** The work is over: what still runs are sidecars, and they are to end. */
  readonly finished: boolean;
  /** The next instant at which the plan changes by itself. */
  readonly wakeAt: number | undefined;
}

export type Records = ReadonlyMap<string, Readonly<ContainerRecord>>;

/** `initialised`: init containers were through once in this life of the node; sidecars restart beside the rest. */
export function planPod(spec: PodSpec, records: Records, initialised: boolean, now: number): Plan {
  if (isFinished(spec, records)) return { start: [], initialised, finished: true, wakeAt: undefined };
  const start: PodContainer[] = [];
  let wakeAt: number | undefined;
  let through = true;
  for (const part of containersOf(spec)) {
    const record = records.get(part.container.name);
    if (!record || (part.role === 'main' && !through)) continue;
    if (part.role === 'init' && (initialised || hasSucceeded(record))) continue;
    if (startsAgain(part, spec, record)) {
      if (record.notBefore <= now) start.push(part);
      else wakeAt = Math.min(wakeAt ?? Infinity, record.notBefore);
    }
    if (part.role === 'main' || initialised) continue;
    if (part.role === 'init' || !record.started) {
      through = false;
      break;
    }
  }
  return { start, initialised: through, finished: false, wakeAt };
}

/** No main container will run (again), or initialisation has failed for good. */
export function isFinished(spec: PodSpec, records: Records): boolean {
  const ended = (part: PodContainer): boolean => {
    const state = records.get(part.container.name)?.state;
    return state?.kind === 'terminated' && !restartsAfter(part, spec, state.exitCode);
  };
  const parts = containersOf(spec);
  return (
    parts.filter(({ role }) => role === 'main').every(ended) ||
    parts.some((part) => {
      const record = records.get(part.container.name);
      return part.role === 'init' && record !== undefined && ended(part) && !hasSucceeded(record);
    })
  );
}

function startsAgain(part: PodContainer, spec: PodSpec, { state }: Readonly<ContainerRecord>): boolean {
  switch (state.kind) {
    case 'waiting':
      return true;
    case 'running':
      return false;
    case 'terminated':
      return restartsAfter(part, spec, state.exitCode);
  }
}

function hasSucceeded({ state }: Readonly<ContainerRecord>): boolean {
  return state.kind === 'terminated' && state.exitCode === 0;
}
