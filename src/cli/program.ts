/** The commands of `taskflow`. */
import { Command } from 'commander';
import { version } from '../version.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addDownCommand } from './commands/down.ts';
import { addFlowsCommand } from './commands/flows.ts';
import { addHistoryCommand } from './commands/history.ts';
import { addInstallCommand } from './commands/install.ts';
import { addKubectlCommand } from './commands/kubectl.ts';
import { addNewKindCommand } from './commands/new-kind.ts';
import { addRunCommand } from './commands/run.ts';
import { addStatusCommand } from './commands/status.ts';
import { addSteerCommands } from './commands/steer.ts';
import { addTreeCommand } from './commands/tree.ts';
import { addUninstallCommand } from './commands/uninstall.ts';
import { addUpCommand } from './commands/up.ts';
import { addVersionCommand } from './commands/version.ts';
import { addWatchCommand } from './commands/watch.ts';

const COMMANDS = [
  addUpCommand,
  addDownCommand,
  addKubectlCommand,
  addStatusCommand,
  addWatchCommand,
  addTreeCommand,
  addHistoryCommand,
  addSteerCommands,
  addFlowsCommand,
  addNewKindCommand,
  addRunCommand,
  addInstallCommand,
  addUninstallCommand,
  addDoctorCommand,
  addVersionCommand,
];

export function createProgram(name: string): Command {
  const program = new Command(name)
    .description('Long operations on Kubernetes as task flows that you can watch, pause, retry and cancel.')
    .version(version, '-V, --version', 'print the version')
    .option('--verbose', 'show stack traces of errors')
    .enablePositionalOptions()
    .showHelpAfterError('(add --help for what is possible)')
    .exitOverride();
  for (const add of COMMANDS) add(program);
  return program;
}
