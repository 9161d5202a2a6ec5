/** The conditions of an object, as they follow from its state and its flow. */
import type { ConditionUpdate } from '../kube/conditions.ts';
import type { StateDef } from './flow-kind.ts';
import type { EngineStatus } from './operation-context.ts';

export function flowConditions(
  state: string,
  def: Pick<StateDef, 'ready' | 'failed'> | undefined,
  status: EngineStatus,
  paused: boolean,
): readonly Omit<ConditionUpdate, 'observedGeneration'>[] {
  return [
    ready(state, def),
    progressing(status),
    degraded(state, def, status),
    paused
      ? { type: 'Paused', status: true, reason: 'PausedByAnnotation', message: 'no task is started' }
      : { type: 'Paused', status: false, reason: 'NotPaused' },
  ];
}

function ready(state: string, def: Pick<StateDef, 'ready' | 'failed'> | undefined): ConditionUpdate {
  if (def?.ready === true)
    return { type: 'Ready', status: true, reason: 'Ready', message: `state is ${state}` };
  return {
    type: 'Ready',
    status: false,
    reason: def?.failed === true ? 'Failed' : 'NotReady',
    message: `state is ${state}`,
  };
}

function progressing({ operationContext: context }: EngineStatus): ConditionUpdate {
  if (!context) return { type: 'Progressing', status: false, reason: 'Idle' };
  const stuck = context.taskStatus === 'failed';
  return {
    type: 'Progressing',
    status: !stuck,
    reason: stuck ? 'PausedOnFailure' : context.compensating === true ? 'Undoing' : 'FlowRunning',
    message: `flow "${context.name}"`,
  };
}

function degraded(
  state: string,
  def: Pick<StateDef, 'failed'> | undefined,
  { operationContext: context, consecutiveFailures, operationHistory }: EngineStatus,
): ConditionUpdate {
  const cause = context?.lastError?.message ?? operationHistory?.[0]?.error ?? '';
  const bad = (reason: string, message: string): ConditionUpdate => ({
    type: 'Degraded',
    status: true,
    reason,
    message,
  });
  if (context?.taskStatus === 'failed')
    return bad('PausedOnFailure', `task "${context.task}" failed and waits for a person: ${cause}`);
  if (def?.failed === true) return bad('Failed', cause === '' ? `state is ${state}` : cause);
  if (consecutiveFailures && consecutiveFailures.count > 0)
    return bad('Retrying', `flow "${consecutiveFailures.flow}" keeps failing: ${cause}`);
  return { type: 'Degraded', status: false, reason: 'AsExpected' };
}
