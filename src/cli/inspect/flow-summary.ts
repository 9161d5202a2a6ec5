/** A flow in a few words each: what tables, trees and lines are made of. Absent things are empty. */
import { findCondition } from '../../kube/conditions.ts';
import type { ConsecutiveFailures, LastError, OperationContext } from '../../taskflow/operation-context.ts';
import { untilText } from './duration-text.ts';
import { type EngineObject, isDegraded } from './engine-object.ts';
import { isGraph, liveTasks } from './task-marks.ts';

export function stepText({ idx, tasks }: OperationContext): string {
  return `${idx}/${tasks.length}`;
}

/** Several live tasks are counted; `status kind/name` names them. */
export function taskText(context: OperationContext): string {
  const { task } = context;
  const { length } = liveTasks(context);
  if (length < 2) return task;
  return isGraph(context) ? `${task} (+${length - 1})` : `${task} (${length} live)`;
}

export function progressText({ progress }: OperationContext, { wide }: { wide: boolean }): string {
  const percent = progress?.percent === undefined ? '' : `${Math.floor(progress.percent)}%`;
  return wide ? [percent, progress?.message ?? ''].filter((part) => part !== '').join(' ') : percent;
}

export function errorText({ reason, message }: LastError): string {
  return message.startsWith(reason) ? message : `${reason}: ${message}`;
}

/** What holds the object up. Without `now` nothing in the text depends on the time of looking. */
export function troubleText(object: EngineObject, now?: number): string {
  const { operationContext, consecutiveFailures, conditions } = object.status ?? {};
  const countdown = (at: string | undefined): string =>
    at === undefined || now === undefined ? '' : ` (next attempt ${untilText(at, now)})`;
  if (operationContext) return flowTrouble(operationContext, countdown);
  if (consecutiveFailures && consecutiveFailures.count > 0) {
    return `${failuresText(consecutiveFailures)}${countdown(consecutiveFailures.nextAttemptAt)}`;
  }
  return isDegraded(object) ? (findCondition(conditions, 'Degraded')?.message ?? '') : '';
}

function flowTrouble(context: OperationContext, countdown: (at: string | undefined) => string): string {
  const { waitingFor, nextAttemptAt } = context;
  const lastError = openError(context);
  if (waitingFor !== undefined && waitingFor !== '')
    return `waiting for ${waitingFor}${countdown(nextAttemptAt)}`;
  if (lastError) return `${errorText(lastError)}${countdown(nextAttemptAt)}`;
  const waiting = liveTasks(context).find((task) => task.waitingFor !== undefined && task.waitingFor !== '');
  return waiting ? `${waiting.task} waits for ${waiting.waitingFor}${countdown(waiting.nextAt)}` : '';
}

/** The last error, unless its task has got over it since. */
function openError({ lastError, finished = [] }: OperationContext): LastError | undefined {
  const overcome = finished.some(
    ({ task, result }) => task === lastError?.task && (result === 'successful' || result === 'skipped'),
  );
  return overcome ? undefined : lastError;
}

/** `sail failed 3 times in a row` */
export function failuresText({ flow, count }: ConsecutiveFailures): string {
  return `${flow} failed ${times(count)}${count === 1 ? '' : ' in a row'}`;
}

export function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
