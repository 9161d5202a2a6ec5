/** `taskflow tree`. */
import type { Command } from 'commander';
import type { TreeFlags } from '../inspect/tree-action.ts';
import { addClusterOptions, OBJECT_ARGUMENT, outputOption } from './cluster-options.ts';

export function addTreeCommand(program: Command): void {
  const command = program
    .command('tree')
    .summary('show an object and everything that it owns')
    .description(
      'Show an object and everything below it by owner references, with states and current tasks: objects with ' +
        'task flows, Pods, PersistentVolumeClaims, Jobs, Services, ConfigMaps and Secrets.',
    )
    .usage('[options] <kind/name>')
    .argument(...OBJECT_ARGUMENT);
  addClusterOptions(command)
    .addOption(outputOption(['table', 'json', 'yaml']).default('table'))
    .action(async (words: string[], flags: TreeFlags) =>
      (await import('../inspect/tree-action.ts')).treeAction(words, flags),
    );
}
