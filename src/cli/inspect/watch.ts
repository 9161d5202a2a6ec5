/** Objects as they change, until a goal is reached or lost, or nobody wants to see more. */
import type { Change } from '../../kube/change.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Forbidden } from '../../kube/errors.ts';
import { paint, printError } from '../terminal.ts';
import type { EngineObject } from './engine-object.ts';
import { type Goal, judge, type Verdict } from './goal.ts';
import { type WatchForm, watchView } from './watch-view.ts';
import { type Selection, WatchedObjects } from './watched-objects.ts';

export interface WatchSubject extends WatchForm {
  readonly selection: Selection;
  /** Flows whose failure is old news. */
  readonly endedBefore: ReadonlySet<string>;
}

export interface WatchOptions {
  readonly goal?: Goal;
  readonly signal: AbortSignal;
}

/** Resolves with the exit code. */
export async function watch(
  client: KubeClient,
  subject: WatchSubject,
  options: WatchOptions,
): Promise<number> {
  const verdict = await untilOver(client, subject, options);
  return verdict ? announce(verdict, subject) : 0;
}

async function untilOver(
  client: KubeClient,
  subject: WatchSubject,
  { goal, signal }: WatchOptions,
): Promise<Verdict | undefined> {
  const { promise: over, resolve: end, reject: fail } = Promise.withResolvers<Verdict | undefined>();
  if (signal.aborted) return undefined;
  signal.addEventListener('abort', () => end(undefined), { once: true });
  await using watched = new WatchedObjects(client, subject.selection);
  using view = watchView(subject, watched);
  watched.start({
    changed: (change) => {
      view.changed(change);
      const verdict = verdictOn(change, subject, goal);
      if (verdict) end(verdict);
    },
    troubled: (error) => {
      // Of several kinds the others can still be watched.
      if (subject.single && error instanceof Forbidden) fail(error);
      else view.troubled(error);
    },
  });
  return await over;
}

function verdictOn(
  { type, object }: Change<EngineObject>,
  { single, endedBefore }: WatchSubject,
  goal: Goal | undefined,
): Verdict | undefined {
  if (!single) return undefined;
  if (type === 'deleted') return { reached: goal === undefined, why: 'was deleted' };
  return goal && judge(object, goal, endedBefore);
}

/** On standard error, as it is no change of the object. */
function announce({ reached, why }: Verdict, { selection }: WatchSubject): number {
  const name = `${selection.types[0]?.kind.toLowerCase() ?? 'object'}/${selection.name ?? ''}`;
  printError(`${reached ? paint('green', '✔') : paint('red', '✘')} ${name} ${why}`);
  return reached ? 0 : 1;
}
