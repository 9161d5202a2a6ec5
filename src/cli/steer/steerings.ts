/** What each steering command asks of the operator: an annotation, its value, and when that is refused at once. */
import type { OperationContext } from '../../taskflow/operation-context.ts';
import { type EngineObject, isPaused, nameText } from '../inspect/engine-object.ts';
import { isGraph, liveTasks } from '../inspect/task-marks.ts';
import { UserError } from '../user-error.ts';

export type SteeringName = 'pause' | 'resume' | 'retry' | 'skip' | 'cancel' | 'reset';

export interface Request {
  readonly object: EngineObject;
  /** Of the annotation, if the object has it. */
  readonly present: string | undefined;
  /** What followed the object on the command line. */
  readonly rest: string;
  readonly flowId?: string;
  readonly now: number;
}

export interface Plan {
  /** Null takes the annotation off. */
  readonly value: string | null;
  /** Told before anything is done, where the user left the choice to us. */
  readonly choice?: string;
}

export interface Steering {
  /** Below the domain. */
  readonly annotation: string;
  /** Undefined: it is so already, as `nothingToDo` says. */
  readonly plan: (request: Request) => Plan | undefined;
  /** A standing order, not a command: it is in force when the condition Paused says so. */
  readonly pausedAfter?: boolean;
  readonly nothingToDo?: string;
}

const PAUSE = 'pause-reconciling';

export const STEERINGS: Readonly<Record<SteeringName, Steering>> = {
  pause: { annotation: PAUSE, plan: () => ({ value: 'true' }), pausedAfter: true },
  resume: {
    annotation: PAUSE,
    plan: planResume,
    pausedAfter: false,
    nothingToDo: 'is not paused',
  },
  // Another value each time: a second wish is not taken for the first one.
  retry: { annotation: 'retry', plan: ({ now }) => ({ value: new Date(now).toISOString() }) },
  skip: { annotation: 'skip', plan: planSkip },
  cancel: { annotation: 'cancel', plan: planCancel },
  reset: { annotation: 'reset', plan: ({ rest }) => ({ value: rest }) },
};

function planResume({ object, present }: Request): Plan | undefined {
  if (present !== undefined) return { value: null };
  if (!isPaused(object)) return undefined;
  throw new UserError(
    `${nameText(object)} is paused by another annotation than ours; look for it with: ` +
      `kubectl get ${nameText(object).replace('/', ' ')} -o yaml`,
  );
}

function planSkip({ object, rest }: Request): Plan {
  const flow = flowOf(object, 'there is no task to skip');
  const live = liveTasks(flow).map(({ task }) => task);
  const skippable = [...new Set(isGraph(flow) ? live : [flow.task, ...live])].filter((task) => task !== '');
  if (rest === '') {
    if (isGraph(flow) && live.length > 1)
      throw new UserError(`${nameText(object)}: several tasks are running, name one: ${quoted(live)}`);
    return { value: flow.task, choice: `skipping task "${flow.task}" of flow "${flow.name}"` };
  }
  if (!skippable.includes(rest))
    throw new UserError(
      `${nameText(object)} is not at task "${rest}"; only a current task can be skipped: ${quoted(skippable)}`,
    );
  return { value: rest };
}

/** With the id of the flow: one that began in the meantime is not hit. */
function planCancel({ object, flowId }: Request): Plan {
  const flow = flowOf(object, 'there is nothing to cancel');
  if (flowId !== undefined) return { value: flowId };
  return { value: flow.flowId ?? '*', choice: `cancelling flow "${flow.name}" (${flow.flowId ?? 'no id'})` };
}

function flowOf(object: EngineObject, consequence: string): OperationContext {
  const flow = object.status?.operationContext;
  if (flow) return flow;
  throw new UserError(
    `${nameText(object)} is in no flow, so ${consequence}; what was: taskflow history ${nameText(object)}`,
  );
}

function quoted(tasks: readonly string[]): string {
  return tasks.map((task) => `"${task}"`).join(', ');
}
