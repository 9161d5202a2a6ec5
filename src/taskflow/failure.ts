/**
 * What a failure does to a flow: again from here, from the start, later, or
 * never. Failures in a row are counted per flow and outlive the context, so
 * that leaving a state and coming back does not begin the count anew.
 */
import { freshSlot } from './attempt.ts';
import { endedTasks } from './history.ts';
import type {
  ConsecutiveFailures,
  FlowResult,
  LastError,
  LiveTask,
  OperationContext,
} from './operation-context.ts';
import { iso, type RetryLimits, type World } from './world.ts';

export type Failures = ConsecutiveFailures | undefined;

/** What follows from the end of a flow, good or bad. */
export type FlowEnd =
  /** The same flow goes on. */
  | { readonly kind: 'on'; readonly context: OperationContext; readonly failures: Failures }
  /** It waits for a person. */
  | { readonly kind: 'stay' }
  | {
      readonly kind: 'leave';
      readonly result: FlowResult;
      readonly status: string;
      readonly failures: Failures;
    };

/** The states that a kind has for the ends of flows. */
export interface EndStates {
  readonly current: string;
  /** The kind's own word for it. */
  readonly failed: string;
}

const FIRST_DELAY_MS = 1_000;
const JITTER = 0.2;

/** 1 s, 2 s, 4 s, …, give or take a fifth. */
export function backoffMs(failures: number, limits: RetryLimits, random: () => number): number {
  const exponent = Math.min(Math.max(0, failures - 1), limits.backoffThreshold);
  const delay = Math.min(FIRST_DELAY_MS * 2 ** exponent, limits.maxDelayMs);
  return Math.round(delay * (1 - JITTER + 2 * JITTER * random()));
}

/** One more failure of this flow. */
export function countFailure(
  context: OperationContext,
  failures: Failures,
  world: World,
): ConsecutiveFailures {
  const count = (failures?.flow === context.name ? failures.count : 0) + 1;
  return {
    flow: context.name,
    count,
    nextAttemptAt: iso(world.now + backoffMs(count, world.limits, world.random)),
  };
}

export function mayRetryHere(
  { failureRule }: OperationContext,
  error: LastError,
  counted: ConsecutiveFailures,
  world: World,
): boolean {
  return (
    error.retryable &&
    failureRule.failureStrategy === 'retry from current' &&
    counted.count <= maxRetryOf(failureRule, world)
  );
}

/** The slot for its next attempt, when the delay is over. */
export function retried(slot: LiveTask, counted: ConsecutiveFailures): LiveTask {
  const { task, step, attempt, interruptions, lastError } = slot;
  return {
    ...freshSlot(task, step),
    attempt: attempt + 1,
    ...(counted.nextAttemptAt !== undefined && { nextAt: counted.nextAttemptAt }),
    ...(interruptions !== undefined && { interruptions }),
    ...(lastError && { lastError }),
  };
}

export function endOfFailed(
  context: OperationContext,
  failures: Failures,
  states: EndStates,
  world: World,
  members: readonly LiveTask[] = [],
): FlowEnd {
  const { failureRule, lastError } = context;
  const { failureStrategy: strategy, failureStatus } = failureRule;
  if (strategy === 'Pause') return { kind: 'stay' };
  const counted = countFailure(context, failures, world);
  const leave = (result: FlowResult, status: string): FlowEnd => ({
    kind: 'leave',
    result,
    status,
    failures: counted,
  });
  if (lastError?.retryable === false || strategy === '')
    return leave('Failed', failureStatus || states.failed);
  if (counted.count > maxRetryOf(failureRule, world)) return leave('Archived', states.failed);
  const retryCount = (failureRule.retryCount ?? 0) + 1;
  if (strategy === 'retry over' && failureStatus !== states.current) return leave('Failed', failureStatus);
  const again =
    strategy === 'retry over' ? fromTheStart(context, counted, members) : fromHere(context, counted);
  return {
    kind: 'on',
    context: { ...again, failureRule: { ...failureRule, retryCount } },
    failures: counted,
  };
}

function fromTheStart(
  context: OperationContext,
  counted: ConsecutiveFailures,
  members: readonly LiveTask[],
): OperationContext {
  const {
    running: _,
    finished: _ended,
    checkpoint: _saved,
    progress: _progress,
    interruptions: _lost,
    ...rest
  } = context;
  return {
    ...rest,
    idx: 0,
    task: '',
    taskId: '',
    taskStatus: '',
    attempt: 1,
    ...(counted.nextAttemptAt !== undefined && { nextAttemptAt: counted.nextAttemptAt }),
    ...(members.length > 0 && { running: [...members] }),
  };
}

function fromHere(context: OperationContext, counted: ConsecutiveFailures): OperationContext {
  const { running, taskStartedAt: _, ...rest } = context;
  const again = (slot: LiveTask): LiveTask => (slot.taskStatus === 'failed' ? retried(slot, counted) : slot);
  return {
    ...rest,
    taskStatus: 'pending',
    taskId: '',
    attempt: (context.attempt ?? 1) + 1,
    ...(counted.nextAttemptAt !== undefined && { nextAttemptAt: counted.nextAttemptAt }),
    ...(running && { running: running.map(again) }),
  };
}

function maxRetryOf({ maxRetry }: OperationContext['failureRule'], { limits }: World): number {
  return maxRetry === undefined || maxRetry === 0 ? limits.maxRetry : maxRetry;
}

/** The flow backwards: the undo tasks of what was finished, the last first. Undefined where nothing is to undo. */
export function undoContext(
  context: OperationContext,
  undoOf: (task: string) => string | undefined,
  end: { readonly result: FlowResult; readonly status: string },
  now: number,
): OperationContext | undefined {
  if (context.compensating === true) return undefined;
  // Members and their step have one undo between them.
  const tasks = [...new Set(undoneTasks(context).flatMap((task) => undoOf(task) ?? []))];
  if (tasks.length === 0) return undefined;
  const {
    running: _,
    checkpoint: _saved,
    progress: _progress,
    nextAttemptAt: _at,
    deadline: _end,
    ...rest
  } = context;
  return {
    ...rest,
    tasks,
    idx: 0,
    task: '',
    taskId: '',
    taskStatus: '',
    attempt: 1,
    finished: endedTasks(context, end.result, now),
    targetStatus: end.status,
    failureRule: { failureStrategy: 'retry from current', failureStatus: end.status },
    compensating: true,
    undoneFor: end.result,
  };
}

function undoneTasks({ finished = [] }: OperationContext): string[] {
  return finished
    .filter(({ result }) => result === 'successful')
    .map(({ task }) => task)
    .toReversed();
}
