/**
 * The promise that every task makes: run again, it changes nothing. That is
 * what happens when the operator ends after the work of a task and before the
 * record of it, so the second run gets the same object as the first.
 */
import { isDeepStrictEqual } from 'node:util';
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import type { Stored } from '../kube/resource-type.ts';
import type { DefinedKind } from '../resource-managers/define-kind.ts';
import type { TaskFn, TaskOutcome } from '../taskflow/task-definition.ts';
import { recordedClient } from './recorded-client.ts';
import { taskContext } from './task-context.ts';

export interface TaskRunOptions {
  /** As it is in the cluster. */
  readonly object: Stored;
  readonly client: KubeClient;
  /** Of a member of `foreach`. */
  readonly item?: string;
  readonly attempt?: number;
  readonly clock?: Clock;
  /** What the task changes outside of the cluster, as something that can be compared. */
  readonly world?: () => unknown;
}

export interface RunTwice {
  readonly first: TaskOutcome;
  /** Undefined as well if it failed; then `changes` tells. */
  readonly second: TaskOutcome;
  /** What the second run did that the first had done already; empty where the task keeps its promise. */
  readonly changes: readonly string[];
}

/** Throws if the first run fails. */
export async function runTaskTwice(
  kind: DefinedKind,
  task: string,
  options: TaskRunOptions,
): Promise<RunTwice> {
  const run = taskOf(kind, task);
  const saved: Record<string, string> = {};
  const context = (client: KubeClient) => taskContext(kind, task, { ...options, client, saved });
  const first = await run(context(options.client));
  const worldBefore = structuredClone(await options.world?.());
  const recorded = recordedClient(options.client);
  const again = await outcomeOf(run, context(recorded.client));
  const worldAfter = await options.world?.();
  return {
    first,
    second: again.outcome,
    changes: [
      ...(again.failure === undefined ? differentStatus(first, again.outcome) : [again.failure]),
      ...recorded.changes,
      ...(isDeepStrictEqual(worldBefore, worldAfter)
        ? []
        : [`the world was ${JSON.stringify(worldBefore)} and is ${JSON.stringify(worldAfter)}`]),
    ],
  };
}

function taskOf({ schema, flowKind }: DefinedKind, name: string): TaskFn {
  const task = flowKind.tasks.get(name);
  if (task) return task.run as TaskFn;
  const known = [...flowKind.tasks.keys()].join(', ');
  throw new Error(`${schema.kind} has no task "${name}" (it has: ${known})`);
}

async function outcomeOf(
  run: TaskFn,
  context: Parameters<TaskFn>[0],
): Promise<{ readonly outcome: TaskOutcome; readonly failure?: string }> {
  try {
    return { outcome: await run(context) };
  } catch (error) {
    return { outcome: undefined, failure: `the second run failed: ${String(error)}` };
  }
}

function differentStatus(first: TaskOutcome, second: TaskOutcome): string[] {
  const [before, after] = [first?.status ?? {}, second?.status ?? {}];
  return isDeepStrictEqual(before, after)
    ? []
    : [`the status is set to ${JSON.stringify(after)}, after ${JSON.stringify(before)}`];
}
