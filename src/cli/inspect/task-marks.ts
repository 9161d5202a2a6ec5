/** Where every task of a flow is: what ended, what lives, what is to come. */
import type { FinishedTask, LiveTask, OperationContext } from '../../taskflow/operation-context.ts';

export type Mark = 'done' | 'running' | 'pending' | 'failed' | 'skipped' | 'canceled';

export interface MarkedTask {
  readonly task: string;
  readonly mark: Mark;
  /** The flow is at it now. */
  readonly current: boolean;
  readonly finished?: FinishedTask;
  readonly live?: LiveTask;
  /** Of a parallel step. */
  readonly members: readonly MarkedTask[];
}

const MARK_OF_RESULT: Readonly<Record<FinishedTask['result'], Mark>> = {
  successful: 'done',
  failed: 'failed',
  skipped: 'skipped',
  canceled: 'canceled',
};
const MARK_OF_STATUS: Readonly<Record<OperationContext['taskStatus'], Mark>> = {
  '': 'pending',
  pending: 'pending',
  running: 'running',
  successful: 'done',
  failed: 'failed',
};
const LIVE: ReadonlySet<OperationContext['taskStatus']> = new Set(['pending', 'running']);

export function markTasks(context: OperationContext): MarkedTask[] {
  const { tasks, idx, running = [], finished = [] } = context;
  const graph = isGraph(context);
  const ended = endedByPosition(context, finished);
  return tasks.map((task, at) => {
    const own = ended.own[at];
    const live = graph ? running.find((node) => node.task === task) : undefined;
    const current = graph ? live !== undefined : at === idx - 1;
    return {
      task,
      mark: own ? MARK_OF_RESULT[own.result] : markAt(context, at, { graph, live }),
      current,
      ...(own && { finished: own }),
      ...(live && { live }),
      members: [
        ...(ended.members[at] ?? []).map(finishedMember),
        // Those of steps to come are planned already.
        ...running.filter(({ step }) => step === task).map(liveMember),
      ],
    };
  });
}

/** Members of the current step, or nodes of the graph, that have begun and not ended. */
export function liveTasks({ task, running = [] }: OperationContext): LiveTask[] {
  return running.filter(
    ({ step, taskStatus }) => (step === undefined || step === task) && LIVE.has(taskStatus),
  );
}

/** Nodes of a graph belong to no step; and its `idx` counts what has ended, so that it is not at `task`. */
export function isGraph({ tasks, task, idx, running = [] }: OperationContext): boolean {
  return running.some(({ step }) => step === undefined) || (task !== '' && tasks[idx - 1] !== task);
}

function markAt(
  { idx, taskStatus }: OperationContext,
  at: number,
  { graph, live }: { graph: boolean; live: LiveTask | undefined },
): Mark {
  if (graph) return live ? MARK_OF_STATUS[live.taskStatus] : 'pending';
  // Flows of ob-operator keep no list of ended tasks: what is before the cursor has succeeded.
  if (at < idx - 1) return 'done';
  return at === idx - 1 ? MARK_OF_STATUS[taskStatus] : 'pending';
}

interface EndedTasks {
  readonly own: readonly (FinishedTask | undefined)[];
  readonly members: readonly (readonly FinishedTask[] | undefined)[];
}

/** What bears the name of no task is a member of the step that was under way, or what is being undone. */
function endedByPosition(
  { tasks, compensating = false }: OperationContext,
  finished: readonly FinishedTask[],
): EndedTasks {
  const own: (FinishedTask | undefined)[] = tasks.map(() => undefined);
  const members: FinishedTask[][] = tasks.map(() => []);
  for (const entry of finished) {
    const at = tasks.findIndex((task, position) => task === entry.task && !own[position]);
    if (at >= 0) own[at] = entry;
    else if (!compensating) members[own.indexOf(undefined)]?.push(entry);
  }
  return { own, members };
}

function finishedMember(finished: FinishedTask): MarkedTask {
  return {
    task: finished.task,
    mark: MARK_OF_RESULT[finished.result],
    current: false,
    finished,
    members: [],
  };
}

function liveMember(live: LiveTask): MarkedTask {
  return { task: live.task, mark: MARK_OF_STATUS[live.taskStatus], current: true, live, members: [] };
}
