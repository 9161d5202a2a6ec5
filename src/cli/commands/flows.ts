/** `taskflow flows`. */
import type { Command } from 'commander';
import type { FlowsFlags } from '../flows/flows-action.ts';
import { outputOption } from './cluster-options.ts';

export function addFlowsCommand(program: Command): void {
  program
    .command('flows')
    .summary('list the flows that this program knows')
    .description(
      'List the flows of the systems and plugins: the states between which they lead, their steps with what plugins ' +
        'have inserted, and what a failure does. Needs no cluster.\n' +
        '  taskflow flows --plugin ./greeting.ts\n  taskflow flows greeting --plugin ./greeting.ts -o yaml',
    )
    .argument('[kind]', 'only flows of this kind')
    .option('--plugin <modules>', 'modules with kinds of your own, separated by commas')
    .addOption(outputOption(['table', 'wide', 'json', 'yaml']))
    .action(async (kind: string | undefined, flags: FlowsFlags) =>
      (await import('../flows/flows-action.ts')).flowsAction(kind, flags),
    );
}
