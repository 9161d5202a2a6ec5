/** Entry of the `taskflow` command. As `kubectl-taskflow` on the PATH it is also `kubectl taskflow`. */
import { Socket } from 'node:net';
import { basename } from 'node:path';
import { CommanderError } from 'commander';
import { errorOf } from '../kube/thrown.ts';
import { tellParent } from './parent-channel.ts';
import { createProgram } from './program.ts';
import { paint, printError } from './terminal.ts';
import { UserError } from './user-error.ts';

const USAGE_ERROR = 2;

async function main(): Promise<void> {
  endWithLauncher();
  const asPlugin = basename(process.argv[1] ?? '').startsWith('kubectl-');
  const program = createProgram(asPlugin ? 'kubectl taskflow' : 'taskflow');
  try {
    await program.parseAsync();
  } catch (error) {
    process.exitCode = report(error, program.opts<{ verbose?: boolean }>().verbose ?? false);
  }
}

/** Prints the error for a person and gives the exit code for a script. */
function report(error: unknown, verbose: boolean): number {
  // Commander has printed its own messages by now.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_ERROR;
  const failure = errorOf(error);
  printError(`${paint('red', 'error:')} ${failure.message}`);
  if (verbose) printError(failure.stack ?? '');
  tellParent({ type: 'failed', message: failure.message });
  return failure instanceof UserError ? failure.exitCode : 1;
}

/** An older Node started us and holds the other end of this pipe (see bin/taskflow.js). */
function endWithLauncher(): void {
  const pipe = process.env['TASKFLOW_PARENT_PIPE'];
  if (pipe === undefined) return;
  delete process.env['TASKFLOW_PARENT_PIPE'];
  const socket = new Socket({ fd: Number(pipe), readable: true, writable: false });
  socket.on('close', () => process.kill(process.pid, 'SIGTERM')).on('error', () => {});
  socket.resume().unref();
}

await main();
