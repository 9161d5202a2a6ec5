/** `taskflow status`. */
import type { Command } from 'commander';
import type { StatusFlags } from '../inspect/status-action.ts';
import { addClusterOptions, outputOption, SELECTION_ARGUMENT } from './cluster-options.ts';

export function addStatusCommand(program: Command): void {
  const command = program
    .command('status')
    .summary('tell where objects are in their flows')
    .description(
      'Tell where objects are in their flows: a row each, or everything about one object.\n' +
        '  taskflow status\n  taskflow status obcluster -A\n  taskflow status obcluster/my-cluster',
    )
    .usage('[options] [kind[/name]]')
    .argument(...SELECTION_ARGUMENT);
  addClusterOptions(command)
    .option('-A, --all-namespaces', 'in all namespaces')
    .addOption(outputOption(['table', 'wide', 'json', 'yaml']))
    .action(async (words: string[], flags: StatusFlags) =>
      (await import('../inspect/status-action.ts')).statusAction(words, flags),
    );
}
