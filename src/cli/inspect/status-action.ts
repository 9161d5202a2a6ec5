/** What `taskflow status` does with its words and flags. */
import { systemClock } from '../../kube/clock.ts';
import { print, printError, table } from '../terminal.ts';
import { byName, engineReport } from './engine-object.ts';
import { findObject, findObjects } from './find-objects.ts';
import { type OutputFormat, printData, sayForbidden } from './print-output.ts';
import { type ScopeFlags, withScope } from './scope.ts';
import { detailLines } from './status-details.ts';
import { statusRows } from './status-table.ts';
import { isObjectTarget, type ObjectTarget, parseTarget, refuseRest, type Target } from './target.ts';

export interface StatusFlags extends ScopeFlags {
  readonly output?: OutputFormat;
}

export async function statusAction(words: readonly string[], flags: StatusFlags): Promise<void> {
  const target = refuseRest(parseTarget(words));
  await (isObjectTarget(target) ? statusOfOne(target, flags) : statusOfAll(target, flags));
}

async function statusOfOne(target: ObjectTarget, flags: StatusFlags): Promise<void> {
  const { object } = await withScope(flags, (scope) => findObject(scope, target));
  const { output } = flags;
  if (output === 'json' || output === 'yaml') return printData(engineReport(object), output);
  const now = systemClock.now();
  if (output === undefined) return print(detailLines(object, now).join('\n'));
  print(table(statusRows([object], { now, wide: output === 'wide', withNamespace: false })));
}

async function statusOfAll(target: Target, flags: StatusFlags): Promise<void> {
  await withScope(flags, async (scope) => {
    const { objects, forbidden } = await findObjects(scope, target);
    const { output = 'table' } = flags;
    sayForbidden(forbidden);
    if (output === 'json' || output === 'yaml')
      return printData(objects.toSorted(byName).map(engineReport), output);
    if (objects.length === 0) return printError(nothingFound(target, scope.namespace));
    const withNamespace = scope.namespace === undefined;
    print(
      table(
        statusRows(objects.toSorted(byName), {
          now: systemClock.now(),
          wide: output === 'wide',
          withNamespace,
        }),
      ),
    );
  });
}

function nothingFound({ kind = 'objects with task flows' }: Target, namespace: string | undefined): string {
  return namespace === undefined
    ? `no ${kind} found`
    : `no ${kind} found in namespace ${namespace} (-A looks in all)`;
}
