/**
 * Commands that people give by annotation, as pure functions on the flow's
 * record. A command that has to end a running attempt waits until it has
 * ended; its annotation stays until the command is carried out or refused.
 */
import { freshSlot } from './attempt.ts';
import { slotOf } from './advance.ts';
import { finishedTask } from './history.ts';
import type { ConsecutiveFailures, FinishedFlow, LiveTask, OperationContext } from './operation-context.ts';
import { type Effect, event, iso, type World } from './world.ts';

export const COMMANDS = ['retry', 'skip', 'cancel', 'reset'] as const;
export type CommandName = (typeof COMMANDS)[number];

export interface Command {
  readonly name: CommandName;
  readonly value: string;
  /** The annotation that says so. */
  readonly annotation: string;
  /** Who set it. */
  readonly by: string;
}

/** What a command may look at. */
export interface FlowRecord {
  readonly status: string;
  readonly context: OperationContext | undefined;
  readonly failures: ConsecutiveFailures | undefined;
  readonly history: readonly FinishedFlow[];
}

export interface CommandWorld extends Pick<World, 'now' | 'view'> {
  readonly states: Readonly<Record<string, { readonly failed?: boolean }>>;
  /** The kind keeps nodes of its graph itself. */
  readonly ownNodes: boolean;
}

export type CommandResult =
  | {
      readonly kind: 'done';
      readonly message: string;
      readonly record: Pick<FlowRecord, 'status' | 'context' | 'failures'>;
      /** How the flow ended, if the command ended it. */
      readonly ended?: 'Canceled';
      readonly effects?: readonly Effect[];
    }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'waits'; readonly effects: readonly Effect[] };

export function applyCommand(command: Command, record: FlowRecord, world: CommandWorld): CommandResult {
  switch (command.name) {
    case 'retry':
      return record.context ? retryFlow(record, record.context, world) : leaveFailed(record, world);
    case 'skip':
      return skip(command.value, record, world);
    case 'cancel':
      return cancel(command, record, world);
    case 'reset':
      return reset(command.value, record, world);
  }
}

function retryFlow(record: FlowRecord, context: OperationContext, world: CommandWorld): CommandResult {
  const waits = endAttempts(liveIds(context), 'retry', world);
  if (waits) return waits;
  const {
    nextAttemptAt: _,
    taskStartedAt: _at,
    interruptions: _lost,
    running,
    finished = [],
    ...rest
  } = context;
  const again = (slot: LiveTask): LiveTask =>
    slot.taskStatus === '' ? slot : { ...freshSlot(slot.task, slot.step), attempt: slot.attempt + 1 };
  const isSequence = context.tasks[context.idx - 1] === context.task;
  const kept = isSequence ? finished : finished.filter(({ result }) => result === 'successful');
  const begun = context.taskStatus !== '';
  return {
    kind: 'done',
    message: `flow "${context.name}" is tried again from task "${context.task}"`,
    record: {
      status: record.status,
      failures: undefined,
      context: {
        ...rest,
        taskStatus: begun ? 'pending' : '',
        taskId: '',
        attempt: begun ? (context.attempt ?? 1) + 1 : 1,
        failureRule: { ...context.failureRule, retryCount: 0 },
        ...(kept.length > 0 && { finished: kept }),
        ...(running && { running: running.map(again) }),
      },
    },
  };
}

function leaveFailed({ status, history }: FlowRecord, { states }: CommandWorld): CommandResult {
  const [last] = history;
  if (states[status]?.failed !== true)
    return {
      kind: 'refused',
      message: `nothing to retry: no flow is running and the state "${status}" is not a failed one`,
    };
  if (last?.fromStatus === undefined)
    return { kind: 'refused', message: 'nothing to retry: no flow is known to have failed; use reset' };
  return {
    kind: 'done',
    message: `flow "${last.name}" is tried again: state is "${last.fromStatus}"`,
    record: { status: last.fromStatus, failures: undefined, context: undefined },
  };
}

function skip(task: string, record: FlowRecord, world: CommandWorld): CommandResult {
  const { context } = record;
  if (!context) return { kind: 'refused', message: `task "${task}" is not skipped: no flow is running` };
  const member = context.running?.find((slot) => slot.task === task && slot.taskStatus !== '');
  if (task !== context.task && !member)
    return {
      kind: 'refused',
      message: `task "${task}" is not skipped: the current task is "${context.task}"`,
    };
  if (member && world.ownNodes)
    return {
      kind: 'refused',
      message: `node "${task}" is not skipped: this kind decides on its nodes itself`,
    };
  const ids = member ? [member.taskId] : liveIds(context);
  const waits = endAttempts(ids, 'skip', world);
  if (waits) return waits;
  const skipped = member ? withoutMember(context, member, world.now) : withTaskSkipped(context, world.now);
  return {
    kind: 'done',
    message: `task "${task}" was skipped`,
    effects: [event('Normal', 'TaskSkipped', `task "${task}" of flow "${context.name}" was skipped`)],
    record: { status: record.status, failures: record.failures, context: skipped },
  };
}

function withTaskSkipped(context: OperationContext, now: number): OperationContext {
  const { running, finished = [], nextAttemptAt: _, ...rest } = context;
  const left = running?.filter(({ step }) => step !== context.task) ?? [];
  return {
    ...rest,
    taskStatus: 'successful',
    taskId: '',
    finished: [...finished, finishedTask(slotOf(context), 'skipped', now)],
    ...(left.length > 0 && { running: left }),
  };
}

/** A skipped node counts as one that succeeded, or nothing behind it would ever start. */
function withoutMember(context: OperationContext, member: LiveTask, now: number): OperationContext {
  const { running = [], finished = [], ...rest } = context;
  const left = running.filter((slot) => slot !== member);
  const result = member.step === undefined ? 'successful' : 'skipped';
  return {
    ...rest,
    taskStatus: context.taskStatus === 'failed' ? 'running' : context.taskStatus,
    finished: [...finished, finishedTask(member, result, now)],
    ...(left.length > 0 && { running: left }),
  };
}

function cancel({ value, by }: Command, record: FlowRecord, { now }: CommandWorld): CommandResult {
  const { context, status, failures } = record;
  if (!context) return { kind: 'refused', message: 'nothing to cancel: no flow is running' };
  if (value !== '*' && value !== context.flowId)
    return {
      kind: 'refused',
      message: `not cancelled: the flow is ${context.flowId ?? 'without id'}, not ${value}`,
    };
  if (context.compensating === true || context.cancelRequested)
    return { kind: 'refused', message: `flow "${context.name}" is being cancelled or undone already` };
  return {
    kind: 'done',
    message: `flow "${context.name}" is being cancelled`,
    record: {
      status,
      failures,
      context: { ...context, cancelRequested: { by, at: iso(now), reason: 'asked for by annotation' } },
    },
  };
}

function reset(state: string, record: FlowRecord, world: CommandWorld): CommandResult {
  if (!Object.hasOwn(world.states, state))
    return {
      kind: 'refused',
      message: `not reset: there is no state "${state}" (there are: ${Object.keys(world.states).join(', ')})`,
    };
  const waits = record.context && endAttempts(liveIds(record.context), 'reset', world);
  if (waits) return waits;
  return {
    kind: 'done',
    message: `reset from state "${record.status}" to "${state}"`,
    record: { status: state, failures: undefined, context: undefined },
    ...(record.context && { ended: 'Canceled' }),
  };
}

/** Every attempt that a context names. */
export function liveIds({ taskId, running = [] }: OperationContext): string[] {
  return [...new Set([taskId, ...running.map((slot) => slot.taskId)])].filter((id) => id !== '');
}

/** Undefined when none of them runs any more. */
function endAttempts(
  ids: readonly string[],
  command: CommandName,
  { view }: CommandWorld,
): CommandResult | undefined {
  const working = ids.filter((id) => view(id).state === 'working');
  if (working.length === 0) return undefined;
  return {
    kind: 'waits',
    effects: working.map((taskId) => ({ kind: 'abort', taskId, reason: `the command ${command} was given` })),
  };
}

/** The commands in annotations, in a fixed order. */
export function commandsIn(
  annotations: Readonly<Record<string, string>>,
  domains: readonly string[],
  byOf: (annotation: string) => string,
): Command[] {
  return COMMANDS.flatMap((name) =>
    domains.flatMap((domain) => {
      const annotation = `${domain}/${name}`;
      const value = annotations[annotation];
      return value === undefined ? [] : [{ name, value, annotation, by: byOf(annotation) }];
    }),
  );
}

export function isSet(
  annotations: Readonly<Record<string, string>> | undefined,
  domains: readonly string[],
  name: 'pause-reconciling' | 'ignore-deletion',
): boolean {
  return domains.some((domain) => annotations?.[`${domain}/${name}`] === 'true');
}
