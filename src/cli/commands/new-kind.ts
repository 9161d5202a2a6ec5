/** `taskflow new-kind`. */
import type { Command } from 'commander';
import type { NewKindFlags } from '../new-kind/new-kind-action.ts';

export function addNewKindCommand(program: Command): void {
  program
    .command('new-kind')
    .summary('begin a kind of your own')
    .description(
      'Write a kind that works, to be changed into yours: its schema, tasks and flow, a sample and a test that kills ' +
        'the operator in the middle. Existing files are never overwritten.\n' +
        '  taskflow new-kind Rocket --group space.example.com',
    )
    .argument('<Name>', 'the kind, as BackupPolicy')
    .option('--dir <dir>', 'where to (default: a folder named like the kind)')
    .option('--group <group>', 'its API group', 'example.com')
    .action(async (name: string, flags: NewKindFlags) =>
      (await import('../new-kind/new-kind-action.ts')).newKindAction(name, flags),
    );
}
