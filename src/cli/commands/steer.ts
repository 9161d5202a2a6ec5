/** `taskflow pause`, `resume`, `retry`, `skip`, `cancel` and `reset`: they ask the operator by annotations. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { durationMs } from '../../runtime/config/duration.ts';
import type { SteerFlags } from '../steer/order.ts';
import type { SteeringName } from '../steer/steerings.ts';
import { addClusterOptions, OBJECT_ARGUMENT } from './cluster-options.ts';

interface SteerCommand {
  readonly name: SteeringName;
  readonly summary: string;
  readonly description: string;
  /** How the arguments are shown; what follows the object may be several words. */
  readonly usage: string;
  readonly option?: readonly [flag: string, description: string];
}

const COMMANDS: readonly SteerCommand[] = [
  {
    name: 'pause',
    usage: '<kind/name>',
    summary: 'begin no further task of an object',
    description: 'Begin no further task of an object. The task that runs now ends by itself.',
  },
  {
    name: 'resume',
    usage: '<kind/name>',
    summary: 'end a pause',
    description: 'Go on with an object that was paused.',
  },
  {
    name: 'retry',
    usage: '<kind/name>',
    summary: 'try a failed task or flow again, now',
    description:
      'Try the current task again without waiting, or the flow that failed last; failures are forgotten.',
  },
  {
    name: 'skip',
    usage: '<kind/name> [task]',
    summary: 'take the current task as done',
    description:
      'Take the current task as done and go on with the next one. Refused if the object is at another task by then.',
  },
  {
    name: 'cancel',
    usage: '<kind/name>',
    summary: 'end the flow of an object',
    description: 'End the flow that the object is in; what it declares to be undone is undone.',
    option: ['--flow-id <id>', 'this flow and no other; * for any (default: the one it is in now)'],
  },
  {
    name: 'reset',
    usage: '<kind/name> <state>',
    summary: 'put an object into a state',
    description: 'Drop the flow of an object and put it into a state that its kind knows. Nothing is undone.',
  },
];

export function addSteerCommands(program: Command): void {
  for (const command of COMMANDS) addSteerCommand(program, command);
}

function addSteerCommand(
  program: Command,
  { name, summary, description, usage, option }: SteerCommand,
): void {
  const command = program
    .command(name)
    .summary(summary)
    .description(description)
    .usage(`[options] ${usage}`)
    .argument(...OBJECT_ARGUMENT);
  if (option) command.option(...option);
  addClusterOptions(command)
    .addOption(timeoutOption())
    .option('--no-wait', 'do not wait for the operator')
    .option('--annotation-domain <domain>', 'domain of the annotations', 'taskflow.dev')
    .action(async (words: string[], flags: SteerFlags) =>
      (await import('../steer/steer-action.ts')).steerAction(name, words, flags),
    );
}

function timeoutOption(): Option {
  return new Option('--timeout <duration>', 'how long the operator may take to react')
    .argParser(duration)
    .default(10_000, '10s');
}

function duration(text: string): number {
  const ms = durationMs(text);
  if (ms === undefined) throw new InvalidArgumentError('It must be a duration such as 30s or 2m.');
  return ms;
}
