/** An object of any kind, as far as the engine's part of its status goes. Nothing of it can be counted on. */
import { type Condition, isConditionTrue } from '../../kube/conditions.ts';
import type { KubeObject, Stored } from '../../kube/resource-type.ts';
import type { EngineStatus } from '../../taskflow/operation-context.ts';

interface EngineFields extends KubeObject {
  status?: Omit<Partial<EngineStatus>, 'conditions'> & {
    readonly conditions?: readonly Condition[];
    /** Where most kinds keep their state. */
    readonly status?: unknown;
    /** Where the others do. */
    readonly phase?: unknown;
  };
}

export type EngineObject = Stored<EngineFields>;

export function stateOf({ status }: EngineObject): string | undefined {
  return [status?.status, status?.phase].find((state) => typeof state === 'string' && state !== '') as
    string | undefined;
}

export function isPaused({ status }: EngineObject): boolean {
  return isConditionTrue(status?.conditions, 'Paused');
}

export function isDegraded({ status }: EngineObject): boolean {
  return isConditionTrue(status?.conditions, 'Degraded');
}

/** The state with what holds it up: `running (paused)`. */
export function stateText(object: EngineObject): string {
  const remarks = [
    ...(isPaused(object) ? ['paused'] : []),
    ...(object.metadata.deletionTimestamp === undefined ? [] : ['being deleted']),
  ];
  const state = stateOf(object) ?? '-';
  return remarks.length === 0 ? state : `${state} (${remarks.join(', ')})`;
}

/** `widget/first`: what the commands take as an argument. */
export function nameText({ kind = 'object', metadata }: EngineObject): string {
  return `${kind.toLowerCase()}/${metadata.name}`;
}

/** The order of lists: by namespace, kind and name. */
export function byName(a: EngineObject, b: EngineObject): number {
  const key = (object: EngineObject): string => `${object.metadata.namespace ?? ''} ${nameText(object)}`;
  return key(a).localeCompare(key(b), 'en', { numeric: true });
}

/** The part that json and yaml show: the stored names, nothing invented. */
export function engineReport(object: EngineObject): object {
  const { apiVersion, kind, metadata, status } = object;
  const { name, namespace, generation, deletionTimestamp } = metadata;
  return {
    apiVersion,
    kind,
    ...(namespace !== undefined && { namespace }),
    name,
    generation,
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    state: stateOf(object) ?? null,
    observedGeneration: status?.observedGeneration,
    operationContext: status?.operationContext ?? null,
    consecutiveFailures: status?.consecutiveFailures,
    conditions: status?.conditions ?? [],
  };
}
