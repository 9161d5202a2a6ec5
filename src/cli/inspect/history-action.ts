/** What `taskflow history` does with its words and flags. */
import { systemClock } from '../../kube/clock.ts';
import { print, printError } from '../terminal.ts';
import { nameText } from './engine-object.ts';
import { findObject } from './find-objects.ts';
import { refuseKindWithoutFlows } from './flow-kinds.ts';
import { historyLines, newestFirst } from './history-lines.ts';
import { type OutputFormat, printData } from './print-output.ts';
import { type ScopeFlags, withScope } from './scope.ts';
import { parseObjectTarget, refuseRest } from './target.ts';

export interface HistoryFlags extends ScopeFlags {
  readonly output: OutputFormat;
}

export async function historyAction(words: readonly string[], flags: HistoryFlags): Promise<void> {
  const target = refuseRest(parseObjectTarget(words));
  const object = await withScope(flags, async (scope) => {
    const found = await findObject(scope, target);
    await refuseKindWithoutFlows(scope, found);
    return found.object;
  });
  const history = object.status?.operationHistory ?? [];
  const { output } = flags;
  if (output === 'json' || output === 'yaml') return printData(newestFirst(history), output);
  if (history.length === 0) return printError(`no flow of ${nameText(object)} has ended yet`);
  print(historyLines(history, { now: systemClock.now(), wide: output === 'wide' }).join('\n'));
}
