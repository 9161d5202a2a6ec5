/**
 * What must hold of flows whatever happens to operators, judged from the
 * journal of the tasks and from every stored version of the status.
 */
import type { Stored } from '../../src/kube/resource-type.ts';
import type { Errand } from '../fixtures/journal/errand.ts';
import type { JournalLine, TaskLine } from '../fixtures/journal/journal.ts';

/** One sentence per breach. */
export function breaches(lines: readonly JournalLine[], versions: readonly Stored<Errand>[]): string[] {
  return [...overlaps(lines), ...wrongOrder(lines), ...unstoredStarts(lines, versions), ...idxBack(versions)];
}

/** Two attempts of one object at once, or a second one without the death of the first. */
function overlaps(lines: readonly JournalLine[]): string[] {
  const found: string[] = [];
  const gone = new Set<number>();
  const open = new Map<string, TaskLine>();
  const stopped = new Set<string>();
  const last = new Map<string, TaskLine>();
  for (const line of lines) {
    if (!('taskId' in line)) {
      gone.add(line.pid);
      continue;
    }
    const { object, task, flowId, phase, pid } = line;
    if (phase === 'end' || phase === 'stopped') {
      if (phase === 'end' && open.get(object)?.taskId !== line.taskId)
        found.push(`${name(line)} ended though it was not the one that ran`);
      if (phase === 'stopped') stopped.add(line.taskId);
      if (open.get(object)?.taskId === line.taskId) open.delete(object);
      continue;
    }
    if (phase !== 'start') continue;
    const running = open.get(object);
    if (running && !gone.has(running.pid)) found.push(`${name(line)} began while ${name(running)} ran`);
    const before = last.get(`${flowId}/${task}`);
    if (before && !gone.has(before.pid) && !stopped.has(before.taskId))
      found.push(`${name(line)} ran again in ${pid} though ${before.pid}, where it ran, was alive`);
    open.set(object, line);
    last.set(`${flowId}/${task}`, line);
  }
  return found;
}

/** A task that begins before all tasks before it have ended. */
function wrongOrder(lines: readonly JournalLine[]): string[] {
  const found: string[] = [];
  const ended = new Map<string, string[]>();
  const begun = new Map<string, string>();
  for (const line of lines) {
    if (!('taskId' in line)) continue;
    const { flowId, task, phase } = line;
    const done = ended.get(flowId) ?? [];
    if (phase === 'end' && !done.includes(task)) ended.set(flowId, [...done, task]);
    if (phase !== 'start') continue;
    const before = begun.get(flowId);
    if (before !== undefined && before !== task) {
      if (!done.includes(before)) found.push(`${name(line)} began before ${before} had ended`);
      if (done.includes(task)) found.push(`${name(line)} began after ${before}, which comes later`);
    }
    begun.set(flowId, task);
  }
  return found;
}

/** The version that a task was given must name it, and must not call it finished. */
function unstoredStarts(lines: readonly JournalLine[], versions: readonly Stored<Errand>[]): string[] {
  const byVersion = new Map(versions.map((version) => [version.metadata.resourceVersion, version]));
  return lines.flatMap((line) => {
    if (!('taskId' in line) || line.phase !== 'start') return [];
    const version = byVersion.get(line.resourceVersion);
    // The watch of the test was too late for it, as after a restart of the API server.
    if (!version) return [];
    const context = version.status?.operationContext;
    if (!context) return [`${name(line)} began on version ${line.resourceVersion}, which has no flow`];
    const { taskId, taskStatus, finished = [] } = context;
    if (taskId !== line.taskId || taskStatus !== 'running')
      return [`${name(line)} began, but "${taskStatus}" ${taskId} was stored`];
    const isDone = finished.some(({ task }) => task === line.task);
    return isDone ? [`${name(line)} began though it was stored as finished`] : [];
  });
}

function idxBack(versions: readonly Stored<Errand>[]): string[] {
  const last = new Map<string, number>();
  return versions.flatMap(({ metadata, status }) => {
    const { flowId = '', idx } = status?.operationContext ?? {};
    if (idx === undefined) return [];
    const before = last.get(flowId) ?? 0;
    last.set(flowId, idx);
    return idx < before ? [`${metadata.name}: idx went from ${before} to ${idx}`] : [];
  });
}

function name({ object, task, taskId, pid }: TaskLine): string {
  return `${object} "${task}" (${taskId}, process ${pid})`;
}
