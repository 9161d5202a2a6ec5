/** Conditions as `metav1.Condition` has them. Nothing here changes its arguments. */
import type { Clock } from './clock.ts';

export type ConditionStatus = 'True' | 'False' | 'Unknown';

export interface Condition {
  readonly type: string;
  readonly status: ConditionStatus;
  /** One word in CamelCase; the API demands one. */
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  /** Which generation of the spec this speaks about. */
  readonly observedGeneration?: number;
}

/** As a caller states it; when the status last changed is found out. */
export interface ConditionUpdate {
  readonly type: string;
  readonly status: ConditionStatus | boolean;
  readonly reason: string;
  readonly message?: string;
  readonly observedGeneration?: number | undefined;
}

/** Limit of the API. */
const MAX_MESSAGE = 32_768;

export function findCondition(
  conditions: readonly Condition[] | undefined,
  type: string,
): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

export function isConditionTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True';
}

/**
 * The list with one condition stated anew, at its old place. The transition
 * time stays as long as the status does; if nothing at all differs, the result
 * is the very list that was given, so that a caller sees there is no write.
 */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  update: ConditionUpdate,
  clock: Pick<Clock, 'now'>,
): readonly Condition[] {
  const old = findCondition(conditions, update.type);
  const status = typeof update.status === 'boolean' ? (update.status ? 'True' : 'False') : update.status;
  const next: Condition = {
    type: update.type,
    status,
    reason: update.reason,
    message: (update.message ?? '').slice(0, MAX_MESSAGE),
    lastTransitionTime: old?.status === status ? old.lastTransitionTime : timestamp(clock.now()),
    ...(update.observedGeneration !== undefined && { observedGeneration: update.observedGeneration }),
  };
  if (!old || !conditions) return [...(conditions ?? []), next];
  return sameCondition(old, next)
    ? conditions
    : conditions.map((condition) => (condition === old ? next : condition));
}

export function removeCondition(
  conditions: readonly Condition[] | undefined,
  type: string,
): readonly Condition[] {
  if (!conditions) return [];
  return findCondition(conditions, type)
    ? conditions.filter((condition) => condition.type !== type)
    : conditions;
}

function sameCondition(a: Condition, b: Condition): boolean {
  return (
    a.status === b.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.lastTransitionTime === b.lastTransitionTime &&
    a.observedGeneration === b.observedGeneration
  );
}

/** metav1.Time has whole seconds; with more, the stored text would differ from ours. */
function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
