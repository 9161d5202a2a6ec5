/** When a watch is over: the object is where the user wants it, or will not get there by itself. */
import type { FinishedFlow } from '../../taskflow/operation-context.ts';
import { type EngineObject, isDegraded, stateOf } from './engine-object.ts';
import { errorText, troubleText } from './flow-summary.ts';

export type Goal = { readonly state: string } | 'settled';

export interface Verdict {
  readonly reached: boolean;
  readonly why: string;
}

const GOOD_RESULTS: ReadonlySet<FinishedFlow['result']> = new Set(['Succeeded', 'Skipped']);

/** `known`: ids of flows that had ended before the watch began; their failures are old news. */
export function judge(object: EngineObject, goal: Goal, known: ReadonlySet<string>): Verdict | undefined {
  const state = stateOf(object);
  if (goal !== 'settled' && state === goal.state) return { reached: true, why: `is ${state}` };
  const failure = newFailure(object, known) ?? deadEnd(object);
  if (failure !== undefined) return { reached: false, why: failure };
  if (goal === 'settled' && isSettled(object)) return { reached: true, why: `has settled as ${state}` };
  return undefined;
}

export function endedFlows({ status }: EngineObject): ReadonlySet<string> {
  return new Set((status?.operationHistory ?? []).map(({ flowId }) => flowId));
}

function newFailure({ status }: EngineObject, known: ReadonlySet<string>): string | undefined {
  const failed = status?.operationHistory?.find(
    ({ flowId, result }) => !known.has(flowId) && !GOOD_RESULTS.has(result),
  );
  if (!failed) return undefined;
  const error = failed.error === undefined ? '' : `: ${failed.error}`;
  return `its flow "${failed.name}" has ended: ${failed.result}${error}`;
}

/** It stays as it is until somebody does something. */
function deadEnd(object: EngineObject): string | undefined {
  const { operationContext: flow, consecutiveFailures } = object.status ?? {};
  if (flow) {
    const waitsForUser = flow.taskStatus === 'failed' && flow.failureRule.failureStrategy === 'Pause';
    if (!waitsForUser) return undefined;
    const error = flow.lastError ? `: ${errorText(flow.lastError)}` : '';
    return `its flow "${flow.name}" waits for you after task "${flow.task}" failed${error}`;
  }
  const inFailedState = isDegraded(object) || /^fail/i.test(stateOf(object) ?? '');
  const failing = (consecutiveFailures?.count ?? 0) > 0;
  if (!isObserved(object) || !(inFailedState || failing)) return undefined;
  const trouble = troubleText(object);
  return `is ${stateOf(object) ?? 'degraded'}${trouble === '' ? '' : `: ${trouble}`}`;
}

function isSettled(object: EngineObject): boolean {
  return stateOf(object) !== undefined && !object.status?.operationContext && isObserved(object);
}

/** The status speaks about the spec as it is now. */
function isObserved({ metadata, status }: EngineObject): boolean {
  return (status?.observedGeneration ?? Infinity) >= (metadata.generation ?? 0);
}
