/** `taskflow history`. */
import type { Command } from 'commander';
import type { HistoryFlags } from '../inspect/history-action.ts';
import { addClusterOptions, OBJECT_ARGUMENT, outputOption } from './cluster-options.ts';

export function addHistoryCommand(program: Command): void {
  const command = program
    .command('history')
    .summary('list the flows that an object has been through')
    .description('List the last flows of an object, the newest first; -o wide with all their tasks.')
    .usage('[options] <kind/name>')
    .argument(...OBJECT_ARGUMENT);
  addClusterOptions(command)
    .addOption(outputOption(['table', 'wide', 'json', 'yaml']).default('table'))
    .action(async (words: string[], flags: HistoryFlags) =>
      (await import('../inspect/history-action.ts')).historyAction(words, flags),
    );
}
