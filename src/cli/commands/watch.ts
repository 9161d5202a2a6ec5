/** `taskflow watch`. */
import type { Command } from 'commander';
import type { WatchFlags } from '../inspect/watch-action.ts';
import { addClusterOptions, outputOption, SELECTION_ARGUMENT } from './cluster-options.ts';

export function addWatchCommand(program: Command): void {
  const command = program
    .command('watch')
    .summary('follow objects through their flows')
    .description(
      'Follow objects through their flows: drawn in place on a terminal, a line per change elsewhere.\n' +
        'Exit code 0: what was waited for is there. 1: the flow failed, or the object is in a failed state or ' +
        'deleted. 130: Ctrl-C.\n  taskflow watch obcluster/my-cluster --until running',
    )
    .usage('[options] [kind[/name]]')
    .argument(...SELECTION_ARGUMENT);
  addClusterOptions(command)
    .option('-A, --all-namespaces', 'in all namespaces')
    .option('--until <state>', 'end when the one object is in this state')
    .option('--until-settled', 'end when the one object is in no flow and its spec is taken in')
    .addOption(outputOption(['table', 'wide', 'json']).default('table'))
    .action(async (words: string[], flags: WatchFlags) =>
      (await import('../inspect/watch-action.ts')).watchAction(words, flags),
    );
}
