/** What `taskflow flows` does with its words and flags. */
import { flowKindsOf, type FlowRow, flowTable } from '../../resource-managers/flow-table.ts';
import type { System } from '../../resource-managers/kind.ts';
import { SYSTEMS } from '../../resource-managers/systems.ts';
import { nearest } from '../../runtime/config/nearest.ts';
import { FlowCatalogue } from '../../taskflow/flow-catalogue.ts';
import { type OutputFormat, printData } from '../inspect/print-output.ts';
import { loadPlugins, refuseDoubles } from '../operator/plugins.ts';
import { print, printError, table } from '../terminal.ts';
import { UserError } from '../user-error.ts';
import { flowRows } from './flow-rows.ts';

export interface FlowsFlags {
  readonly plugin?: string;
  readonly output?: OutputFormat;
}

export async function flowsAction(kind: string | undefined, flags: FlowsFlags): Promise<void> {
  const { plugin = '', output = 'table' } = flags;
  const systems = await systemsWith(plugin.split(',').filter((module) => module !== ''));
  const all = flowTable(systems, checkedCatalogue(systems));
  const rows = kind === undefined ? all : rowsOf(kind, systems, all);
  if (output === 'json' || output === 'yaml') return printData(rows, output);
  if (rows.length === 0) return printError('there are no flows; --plugin adds kinds of your own');
  print(table(flowRows(rows, { wide: output === 'wide' })));
}

async function systemsWith(plugins: readonly string[]): Promise<readonly System[]> {
  const { systems, failures } = await loadPlugins(plugins);
  if (failures.length > 0) throw new UserError(`plugins cannot be loaded:\n  ${failures.join('\n  ')}`);
  const all = [...SYSTEMS, ...systems];
  refuseDoubles(all);
  return all;
}

/** What the operator would refuse to start with is told here as well. */
function checkedCatalogue(systems: readonly System[]): FlowCatalogue {
  const kinds = flowKindsOf(systems);
  const catalogue = new FlowCatalogue(systems.flatMap(({ extensions = [] }) => extensions));
  const faults = catalogue.faults(kinds);
  if (faults.length > 0) throw new UserError(`the flows have faults:\n  ${faults.join('\n  ')}`);
  for (const warning of catalogue.warnings(kinds)) printError(`warning: ${warning}`);
  return catalogue;
}

/** The kind in any form that kubectl takes. */
function rowsOf(word: string, systems: readonly System[], rows: readonly FlowRow[]): readonly FlowRow[] {
  const schemas = flowKindsOf(systems).map(({ schema }) => schema);
  const wanted = word.toLowerCase();
  const found = schemas.filter(({ kind, plural, singular, shortNames }) =>
    [kind.toLowerCase(), plural, singular, ...shortNames].includes(wanted),
  );
  if (found.length > 0) return rows.filter(({ kind }) => found.some((schema) => schema.kind === kind));
  const names = schemas.map(({ kind }) => kind);
  const guess = nearest(word, names);
  throw new UserError(
    `there is no kind "${word}" with flows${guess === undefined ? '' : `; did you mean ${guess}?`}` +
      (names.length === 0 ? ' (--plugin adds kinds of your own)' : ` (there are: ${names.join(', ')})`),
  );
}
