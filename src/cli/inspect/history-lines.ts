/** The flows that an object has been through, the newest first. */
import type { FinishedFlow, FinishedTask } from '../../taskflow/operation-context.ts';
import { table } from '../terminal.ts';
import { cut } from './cut.ts';
import { ageText, spentText } from './duration-text.ts';

export interface HistoryView {
  readonly now: number;
  /** With every task, and nothing is cut. */
  readonly wide: boolean;
}

const LONGEST_ERROR = 60;
const TITLES = ['FLOW', 'RESULT', 'ENDED', 'DURATION', 'TASKS', 'FROM', 'ERROR'];

export function newestFirst(history: readonly FinishedFlow[]): FinishedFlow[] {
  return history.toSorted((a, b) => Date.parse(b.finishedAt) - Date.parse(a.finishedAt));
}

export function historyLines(history: readonly FinishedFlow[], view: HistoryView): string[] {
  const rows = newestFirst(history).flatMap((flow) => [
    flowRow(flow, view),
    ...(view.wide ? flow.tasks.map(taskRow) : []),
  ]);
  return table([TITLES, ...rows]).split('\n');
}

function flowRow(flow: FinishedFlow, { now, wide }: HistoryView): string[] {
  const error = (flow.error ?? '').replaceAll(/\s+/g, ' ');
  return [
    flow.name,
    flow.result,
    `${ageText(flow.finishedAt, now)} ago`,
    spentText(Date.parse(flow.finishedAt) - Date.parse(flow.startedAt)),
    String(flow.tasks.length),
    flow.fromStatus ?? '-',
    wide ? error : cut(error, LONGEST_ERROR),
  ];
}

function taskRow({ task, result, attempts, durationMs, error = '' }: FinishedTask): string[] {
  const often = attempts < 2 ? '' : `${attempts} attempts`;
  return [`  ${task}`, result, '', spentText(durationMs), often, '', error.replaceAll(/\s+/g, ' ')];
}
