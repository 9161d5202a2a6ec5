/** Flows as a table, a row each. */
import type { FlowRow } from '../../resource-managers/flow-table.ts';
import { cut } from '../inspect/cut.ts';

const TITLES = ['SYSTEM', 'KIND', 'FLOW', 'FROM → TO', 'STEPS', 'ON FAILURE'];
const LONGEST_STEPS = 60;

/** Rows with the titles first. */
export function flowRows(flows: readonly FlowRow[], { wide }: { readonly wide: boolean }): string[][] {
  return [
    TITLES,
    ...flows.map((flow) => [
      flow.system,
      flow.kind,
      flow.flow,
      // A state's function may choose it: then nobody knows before there is an object.
      `${flow.from.join(', ') || '?'} → ${flow.to.join(', ')}`,
      wide ? stepsText(flow) : cut(stepsText(flow), LONGEST_STEPS),
      failureText(flow),
    ]),
  ];
}

function stepsText({ steps }: FlowRow): string {
  return steps.length === 0 ? '-' : steps.join(', ');
}

function failureText({ onFailure, failureStatus, maxRetry }: FlowRow): string {
  const most = maxRetry === 0 ? '' : ` (at most ${maxRetry})`;
  return onFailure === 'Pause'
    ? 'Pause'
    : `${onFailure}${onFailure === '' ? '' : most} → ${failureStatus}`.trim();
}
