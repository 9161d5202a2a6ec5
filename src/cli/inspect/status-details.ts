/** One object at length: its flow task by task, what holds it up, its conditions. */
import type { Condition } from '../../kube/conditions.ts';
import type { OperationContext } from '../../taskflow/operation-context.ts';
import { paint, table } from '../terminal.ts';
import { ageText, spentText, untilText } from './duration-text.ts';
import { type EngineObject, isPaused, nameText, stateOf, stateText } from './engine-object.ts';
import { errorText, failuresText, progressText, times } from './flow-summary.ts';
import { isGraph, liveTasks, type Mark, type MarkedTask, markTasks } from './task-marks.ts';

const SIGN: Readonly<Record<Mark, string>> = {
  done: paint('green', '✔'),
  running: paint('cyan', '●'),
  pending: paint('dim', '○'),
  failed: paint('red', '✘'),
  skipped: paint('yellow', '↷'),
  canceled: paint('yellow', '–'),
};

/** A label and what there is to say; empty texts are left out. */
type Fact = readonly [label: string, text: string];

export function detailLines(object: EngineObject, now: number): string[] {
  const { operationContext: flow, conditions = [] } = object.status ?? {};
  const sections = [
    [paint('bold', `${nameText(object)}${where(object)}`), ...factLines([...facts(object, now)])],
    flow ? taskLines(flow, now) : [],
    conditions.length === 0 ? [] : ['Conditions', ...conditionLines(conditions, now)],
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .flatMap((lines, at) => (at === 0 ? lines : ['', ...lines]));
}

function where({ metadata, apiVersion = '' }: EngineObject): string {
  return `${metadata.namespace === undefined ? '' : ` in ${metadata.namespace}`} (${apiVersion})`;
}

function* facts(object: EngineObject, now: number): Generator<Fact> {
  const { operationContext: flow, consecutiveFailures, operationHistory = [] } = object.status ?? {};
  yield ['State', stateText(object)];
  if (flow) yield* flowFacts(flow, now);
  else yield ['Flow', 'none'];
  if (isPaused(object)) yield ['Paused', 'no task begins until: taskflow resume ' + nameText(object)];
  if (consecutiveFailures && consecutiveFailures.count > 0) {
    const { nextAttemptAt } = consecutiveFailures;
    // In a flow, its next attempt says so.
    const next = flow || nextAttemptAt === undefined ? '' : `, begins again ${untilText(nextAttemptAt, now)}`;
    yield ['Failures', `${failuresText(consecutiveFailures)}${next}`];
  }
  const [last] = operationHistory;
  if (!flow && last) {
    const error = last.error === undefined ? '' : `: ${last.error}`;
    yield ['Last flow', `${last.name} ${last.result} ${ageText(last.finishedAt, now)} ago${error}`];
  }
  if (isBehind(object)) yield ['Spec', 'has changed since; the operator has not looked at it yet'];
}

function* flowFacts(flow: OperationContext, now: number): Generator<Fact> {
  const { failureRule, cancelRequested, lastError, progress, running = [] } = flow;
  yield ['Flow', flowText(flow, now)];
  yield ['Leads to', flow.compensating ? '' : flow.targetStatus];
  yield ['Undone', flow.compensating ? `what was done is being undone (${flow.undoneFor ?? 'failed'})` : ''];
  yield [
    'Cancelled',
    cancelRequested ? `by ${cancelRequested.by}, ${ageText(cancelRequested.at, now)} ago` : '',
  ];
  yield ['On failure', failureText(failureRule)];
  yield ['Deadline', flow.deadline === undefined ? '' : untilText(flow.deadline, now)];
  // Else it is beside the one task that runs.
  yield ['Progress', liveTasks(flow).length > 0 ? progressText(flow, { wide: true }) : ''];
  yield ['Heartbeat', progress ? `${ageText(progress.heartbeatAt, now)} ago` : ''];
  yield ['Waiting for', flow.waitingFor ?? ''];
  yield ['Next attempt', flow.nextAttemptAt === undefined ? '' : untilText(flow.nextAttemptAt, now)];
  yield ['Interrupted', flow.interruptions ? `${times(flow.interruptions)} by restarts of the operator` : ''];
  if (lastError && !running.some((task) => task.lastError?.at === lastError.at))
    yield [
      'Last error',
      `${errorText(lastError)}\n(task "${lastError.task}", attempt ${lastError.attempt}, ${ageText(lastError.at, now)} ago)`,
    ];
}

function flowText(flow: OperationContext, now: number): string {
  const progress = isGraph(flow)
    ? `${flow.idx} of ${flow.tasks.length} tasks ended`
    : `step ${flow.idx} of ${flow.tasks.length}`;
  const since = flow.startedAt === undefined ? '' : `, began ${ageText(flow.startedAt, now)} ago`;
  const id = flow.flowId === undefined ? '' : `   id ${flow.flowId}`;
  return `${flow.name}, ${progress}${since}${id}`;
}

function failureText(rule: OperationContext['failureRule'] | undefined): string {
  if (!rule || rule.failureStrategy === '') return '';
  const { failureStrategy, failureStatus, retryCount = 0, maxRetry = 0 } = rule;
  const limit = maxRetry === 0 ? '' : ` of at most ${maxRetry}`;
  const to = failureStatus === '' ? '' : `, then ${failureStatus}`;
  return `${failureStrategy.toLowerCase()}${to}; failures so far: ${retryCount}${limit}`;
}

function isBehind(object: EngineObject): boolean {
  const { generation = 0 } = object.metadata;
  const observed = object.status?.observedGeneration;
  return observed !== undefined && observed < generation && stateOf(object) !== undefined;
}

/** A text of several lines stays in its column. */
function factLines(all: readonly Fact[]): string[] {
  const rows = all
    .filter(([, text]) => text !== '')
    .flatMap(([label, text]) => text.split('\n').map((line, at) => [at === 0 ? `  ${label}` : '', line]));
  return table(rows).split('\n');
}

interface TaskRow {
  readonly sign: string;
  readonly depth: number;
  readonly cells: readonly string[];
}

function taskLines(flow: OperationContext, now: number): string[] {
  const rows = markTasks(flow).flatMap((task) => taskRows(task, flow, now, 0));
  // Signs may be painted, which a table cannot measure.
  const lines = table(
    rows.map(({ depth, cells }) => [`${'  '.repeat(depth)}${cells[0]}`, ...cells.slice(1)]),
  );
  const texts = lines.split('\n');
  return rows.map(({ sign }, at) => `  ${sign} ${texts[at] ?? ''}`);
}

function taskRows(task: MarkedTask, flow: OperationContext, now: number, depth: number): TaskRow[] {
  const row = { sign: SIGN[task.mark], depth, cells: [task.task, task.mark, ...taskCells(task, flow, now)] };
  const members = task.members.flatMap((member) => taskRows(member, flow, now, depth + 1));
  return [row, ...members];
}

/** How long, how often, and why. */
function taskCells({ finished, live, current, members }: MarkedTask, flow: OperationContext, now: number) {
  if (finished)
    return [spentText(finished.durationMs), attemptsText(finished.attempts), finished.error ?? ''];
  if (live) {
    const trouble = live.lastError ? errorText(live.lastError) : '';
    const wait = live.waitingFor === undefined ? '' : `waiting for ${live.waitingFor}`;
    const next = live.nextAt === undefined ? '' : `next attempt ${untilText(live.nextAt, now)}`;
    const why = [wait, next, trouble].filter((text) => text !== '').join('; ');
    return [ageText(live.startedAt, now), attemptText(live.attempt), why];
  }
  if (!current || members.length > 0) return ['', '', ''];
  return [
    ageText(flow.taskStartedAt, now),
    flow.attempt === undefined ? '' : attemptText(flow.attempt),
    progressText(flow, { wide: true }),
  ];
}

function attemptsText(attempts: number): string {
  return attempts < 2 ? '' : `${attempts} attempts`;
}

function attemptText(attempt: number): string {
  return `attempt ${attempt}`;
}

/** Those of built-in kinds may have neither reason nor message. */
function conditionLines(conditions: readonly Partial<Condition>[], now: number): string[] {
  const rows = conditions.map(({ type, status = '', reason = '', message = '', lastTransitionTime }) => [
    `  ${type}`,
    status,
    reason,
    ageText(lastTransitionTime, now),
    message.replaceAll(/\s+/g, ' '),
  ]);
  return table(rows).split('\n');
}
