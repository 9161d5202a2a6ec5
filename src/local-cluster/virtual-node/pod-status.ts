/**
 * The status that a Pod's records amount to: phase, conditions and container
 * statuses by the kubelet's rules, and the patch from the stored one. Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Pod } from '../../kube/builtin-resources.ts';
import { type ContainerRecord, type ContainerState, hasRun } from './container-record.ts';
import type { Records } from './pod-plan.ts';
import { containersOf, type PodContainer, type PodSpec, specOf, type StoredPod } from './pod-spec.ts';
import { restartsAfter } from './restart-policy.ts';
import { apiTime } from './timestamps.ts';

export type PodStatus = NonNullable<Pod['status']>;
export type Phase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';
type Condition = NonNullable<PodStatus['conditions']>[number];
type ContainerStatus = NonNullable<PodStatus['containerStatuses']>[number];
type Verdict = Pick<Condition, 'status' | 'reason' | 'message'>;

export interface PodFacts {
  readonly pod: StoredPod;
  readonly records: Records;
  readonly now: number;
  readonly startTime: number;
  readonly hostIP: string;
  /** Undefined until volumes and address are there. */
  readonly podIP: string | undefined;
  /** The Pod has been ended from outside (deletion, deadline) and nothing of it runs any more. */
  readonly ended?: { readonly reason?: string; readonly message?: string } | undefined;
}

export function isTerminal(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

export function podStatus(facts: PodFacts): PodStatus {
  const { pod, records, podIP, hostIP, ended } = facts;
  const spec = specOf(pod);
  const phase = podPhase(spec, records, facts.ended);
  const statuses = (roles: readonly string[]): ContainerStatus[] =>
    containersOf(spec)
      .filter(({ role }) => roles.includes(role))
      .map((part) => containerStatus(part, records.get(part.container.name), pod.metadata.uid));
  const init = statuses(['init', 'sidecar']);
  return {
    phase,
    ...(ended?.reason !== undefined && { reason: ended.reason }),
    ...(ended?.message !== undefined && { message: ended.message }),
    ...(pod.metadata.generation !== undefined && { observedGeneration: pod.metadata.generation }),
    startTime: apiTime(facts.startTime),
    hostIP,
    hostIPs: [{ ip: hostIP }],
    ...(podIP !== undefined && { podIP, podIPs: [{ ip: podIP }] }),
    ...(init.length > 0 && { initContainerStatuses: init }),
    containerStatuses: statuses(['main']),
    conditions: conditions(facts, phase),
  };
}

export function podPhase(spec: PodSpec, records: Records, ended?: PodFacts['ended']): Phase {
  if (ended?.reason !== undefined) return 'Failed';
  const parts = containersOf(spec).flatMap((part) => {
    const record = records.get(part.container.name);
    return record ? [{ part, record }] : [];
  });
  const main = parts.filter(({ part }) => part.role === 'main');
  const init = parts.filter(({ part }) => part.role === 'init');
  const sidecars = parts.filter(({ part }) => part.role === 'sidecar');
  const restarts = ({ part, record }: (typeof parts)[number]): boolean =>
    restartsAfter(part, spec, lastExitCode(record) ?? 0);
  const failed = init.some(
    (one) => one.record.state.kind === 'terminated' && one.record.state.exitCode !== 0 && !restarts(one),
  );
  // A terminal phase is final: it waits for the sidecars.
  if (failed) return sidecars.some(({ record }) => isRunning(record)) ? 'Pending' : 'Failed';
  const initialised = main.some(({ record }) => hasRun(record));
  const initPending =
    init.some(({ record }) => lastExitCode(record) === undefined || isRunning(record)) ||
    (!initialised && sidecars.some(({ record }) => !record.started));
  if (initPending && !ended) return 'Pending';
  if (main.some(({ record }) => !hasRun(record))) return ended ? 'Failed' : 'Pending';
  if ([...main, ...sidecars].some(({ record }) => isRunning(record))) return 'Running';
  if (!ended && main.some(restarts)) return 'Running';
  return main.every(({ record }) => lastExitCode(record) === 0) ? 'Succeeded' : 'Failed';
}

function containerStatus(
  { container, role }: PodContainer,
  record: Readonly<ContainerRecord> | undefined,
  uid: string,
): ContainerStatus {
  const image = container.image ?? '';
  if (!record) return { name: container.name, image, imageID: '', ready: false, restartCount: 0 };
  const { state, last, run } = record;
  const containerID = (ofRun: number): string => `process://${uid}/${container.name}/${ofRun}`;
  const shown = state.kind === 'waiting' && last ? run : state.kind === 'waiting' ? undefined : run;
  return {
    name: container.name,
    image,
    imageID: state.kind === 'waiting' ? '' : image,
    ready: role === 'init' ? state.kind === 'terminated' && state.exitCode === 0 : record.ready,
    started: role === 'init' ? isRunning(record) : record.started,
    restartCount: run,
    ...(shown !== undefined && { containerID: containerID(shown) }),
    state: apiState(state, containerID(run)),
    lastState: last ? apiState(last, containerID(state.kind === 'waiting' ? run : run - 1)) : {},
  };
}

function apiState(state: ContainerState, containerID: string): NonNullable<ContainerStatus['state']> {
  switch (state.kind) {
    case 'waiting':
      return {
        waiting: { reason: state.reason, ...(state.message !== undefined && { message: state.message }) },
      };
    case 'running':
      return { running: { startedAt: apiTime(state.startedAt) } };
    case 'terminated':
      return {
        terminated: {
          exitCode: state.exitCode,
          reason: state.reason,
          ...(state.message !== undefined && { message: state.message }),
          startedAt: apiTime(state.startedAt),
          finishedAt: apiTime(state.finishedAt),
          containerID,
        },
      };
  }
}

const OWN_CONDITIONS = [
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodScheduled',
] as const;

function conditions(facts: PodFacts, phase: Phase): Condition[] {
  const { pod, now } = facts;
  const containersReady = containersReadyVerdict(facts, phase);
  const verdicts: Record<(typeof OWN_CONDITIONS)[number], Verdict> = {
    PodReadyToStartContainers: { status: facts.podIP === undefined || isTerminal(phase) ? 'False' : 'True' },
    Initialized: initializedVerdict(facts, phase),
    Ready: containersReady.status === 'True' ? readinessGatesVerdict(pod) : containersReady,
    ContainersReady: containersReady,
    PodScheduled: { status: 'True' },
  };
  return OWN_CONDITIONS.map((type) => {
    const before = pod.status?.conditions?.find((condition) => condition.type === type);
    const { status, reason, message } = verdicts[type];
    return {
      type,
      status,
      ...(reason !== undefined && { reason }),
      ...(message !== undefined && { message }),
      ...(pod.metadata.generation !== undefined && { observedGeneration: pod.metadata.generation }),
      lastTransitionTime:
        before?.status === status && before.lastTransitionTime != null
          ? before.lastTransitionTime
          : apiTime(now),
    };
  });
}

function containersReadyVerdict({ pod, records }: PodFacts, phase: Phase): Verdict {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  const unready = containersOf(specOf(pod))
    .filter(({ role, container }) => role !== 'init' && !records.get(container.name)?.ready)
    .map(({ container }) => container.name);
  if (unready.length === 0) return { status: 'True' };
  return {
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: [${unready.join(' ')}]`,
  };
}

function readinessGatesVerdict(pod: StoredPod): Verdict {
  const unmet = (pod.spec?.readinessGates ?? []).flatMap(({ conditionType }) => {
    const condition = pod.status?.conditions?.find(({ type }) => type === conditionType);
    if (condition?.status === 'True') return [];
    return condition
      ? [`the status of pod readiness gate "${conditionType}" is not "True", but ${condition.status}`]
      : [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`];
  });
  if (unmet.length === 0) return { status: 'True' };
  return { status: 'False', reason: 'ReadinessGatesNotReady', message: unmet.join(', ') };
}

function initializedVerdict({ pod, records }: PodFacts, phase: Phase): Verdict {
  if (phase === 'Succeeded') return { status: 'True', reason: 'PodCompleted' };
  const parts = containersOf(specOf(pod));
  const record = ({ container }: PodContainer): Readonly<ContainerRecord> | undefined =>
    records.get(container.name);
  const wasInitialised = parts.some((part) => {
    const known = record(part);
    return part.role === 'main' && known !== undefined && hasRun(known);
  });
  const incomplete = parts.filter((part) => {
    const known = record(part);
    if (part.role === 'sidecar') return !known?.started;
    return part.role === 'init' && !(known?.state.kind === 'terminated' && known.state.exitCode === 0);
  });
  if (wasInitialised || incomplete.length === 0) return { status: 'True' };
  return {
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${incomplete.map(({ container }) => container.name).join(' ')}]`,
  };
}

const OWN_FIELDS = [
  'phase',
  'reason',
  'message',
  'observedGeneration',
  'startTime',
  'hostIP',
  'hostIPs',
  'podIP',
  'podIPs',
  'initContainerStatuses',
  'containerStatuses',
] as const;

/**
 * A strategic merge patch with what differs, or undefined. Conditions merge by
 * type, so those of others stay; what a condition no longer says is nulled,
 * since a merge would keep it.
 */
export function statusPatch(pod: StoredPod, wanted: PodStatus): object | undefined {
  const stored = pod.status ?? {};
  const changed: Record<string, unknown> = {};
  for (const field of OWN_FIELDS)
    if (!isDeepStrictEqual(stored[field], wanted[field])) changed[field] = wanted[field] ?? null;
  for (const list of ['podIPs', 'hostIPs'] as const)
    if (Array.isArray(changed[list]) && stored[list])
      changed[list] = [{ $patch: 'replace' }, ...(wanted[list] ?? [])];
  const conditionsChanged = (wanted.conditions ?? []).filter(
    (condition) => !stored.conditions?.some((before) => isDeepStrictEqual(withoutNulls(before), condition)),
  );
  if (conditionsChanged.length > 0)
    changed['conditions'] = conditionsChanged.map((condition) => ({
      ...condition,
      reason: condition.reason ?? null,
      message: condition.message ?? null,
      lastProbeTime: null,
    }));
  if (Object.keys(changed).length === 0) return undefined;
  return { metadata: { uid: pod.metadata.uid }, status: changed };
}

/** The API server answers `lastProbeTime: null` where nothing was written. */
function withoutNulls(condition: Condition): object {
  return Object.fromEntries(Object.entries(condition).filter(([, value]) => value !== null));
}

function isRunning({ state }: Readonly<ContainerRecord>): boolean {
  return state.kind === 'running';
}

/** Of the present state if it has one, of the run before otherwise. */
function lastExitCode({ state, last }: Readonly<ContainerRecord>): number | undefined {
  return state.kind === 'terminated' ? state.exitCode : last?.exitCode;
}
