/** The ring of finished flows, kept small whatever happens. */
import type {
  FinishedFlow,
  FinishedTask,
  FlowResult,
  LiveTask,
  OperationContext,
} from './operation-context.ts';
import { iso } from './world.ts';

const MOST_FLOWS = 10;
const MOST_BYTES = 16 * 1024;
const MOST_ERROR_TEXT = 256;
const MOST_TASKS = 64;

export function finishedTask(
  { task, attempt, startedAt, lastError }: LiveTask,
  result: FinishedTask['result'],
  now: number,
): FinishedTask {
  const durationMs = startedAt === undefined ? 0 : Math.max(0, now - Date.parse(startedAt));
  return {
    task,
    attempts: attempt,
    durationMs,
    result,
    ...(result === 'failed' && lastError && { error: cut(lastError.message) }),
  };
}

export function finishedFlow(context: OperationContext, result: FlowResult, now: number): FinishedFlow {
  const { startStatus } = context;
  const tasks = endedTasks(context, result, now);
  const error = result === 'Succeeded' ? undefined : causeOf(context, tasks);
  return {
    flowId: context.flowId ?? '',
    name: context.name,
    result,
    startedAt: context.startedAt ?? iso(now),
    finishedAt: iso(now),
    ...(startStatus !== undefined && { fromStatus: startStatus }),
    ...(error !== undefined && { error: cut(error) }),
    tasks: tasks.slice(-MOST_TASKS),
  };
}

/** The newest first; old ones go when there are too many or they take too much room. */
export function withFlow(history: readonly FinishedFlow[] | undefined, flow: FinishedFlow): FinishedFlow[] {
  const kept = [flow, ...(history ?? [])].slice(0, MOST_FLOWS);
  while (kept.length > 1 && Buffer.byteLength(JSON.stringify(kept)) > MOST_BYTES) kept.pop();
  return kept;
}

/** Why the flow did not succeed: of one that was undone, the failure before that. */
function causeOf(
  { compensating, lastError }: OperationContext,
  tasks: readonly FinishedTask[],
): string | undefined {
  const failed = compensating === true ? tasks.findLast(({ result }) => result === 'failed') : undefined;
  if (failed) return `${failed.task}: ${failed.error ?? ''}`;
  return lastError && `${lastError.task}: ${lastError.message}`;
}

/** A flow that did not succeed ended in the middle of tasks. */
export function endedTasks(context: OperationContext, result: FlowResult, now: number): FinishedTask[] {
  const { task, taskStatus, attempt = 1, taskStartedAt, lastError, compensating } = context;
  const { running = [], finished = [] } = context;
  const failed = running.filter((slot) => slot.taskStatus === 'failed');
  const members = failed.map((slot) => finishedTask(slot, 'failed', now));
  const open = taskStatus === 'failed' || taskStatus === 'pending';
  const isStep =
    members.length > 0 || running.some(({ step }) => step === task) || finished.at(-1)?.task === task;
  if (task === '' || !open || compensating === true || isStep) return [...finished, ...members];
  const slot: LiveTask = {
    task,
    taskId: '',
    taskStatus,
    attempt,
    ...(taskStartedAt !== undefined && { startedAt: taskStartedAt }),
    ...(lastError && { lastError }),
  };
  return [...finished, finishedTask(slot, result === 'Canceled' ? 'canceled' : 'failed', now)];
}

function cut(text: string): string {
  return text.length <= MOST_ERROR_TEXT ? text : `${text.slice(0, MOST_ERROR_TEXT - 1)}…`;
}
