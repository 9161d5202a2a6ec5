/** What `taskflow watch` does with its words and flags. */
import { constants } from 'node:os';
import { type OutputFormat, sayForbidden } from './print-output.ts';
import { findObject, findObjects } from './find-objects.ts';
import { endedFlows, type Goal } from './goal.ts';
import { type Scope, type ScopeFlags, withScope } from './scope.ts';
import { isObjectTarget, parseTarget, refuseRest, type Target, usageError } from './target.ts';
import { watch, type WatchSubject } from './watch.ts';

export interface WatchFlags extends ScopeFlags {
  readonly output: Exclude<OutputFormat, 'yaml'>;
  readonly until?: string;
  readonly untilSettled?: boolean;
}

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** What a shell gives to a program that a signal has ended. */
const SIGNAL_BASE = 128;

export async function watchAction(words: readonly string[], flags: WatchFlags): Promise<void> {
  const target = refuseRest(parseTarget(words));
  const goal = goalOf(flags);
  if (goal && !isObjectTarget(target))
    throw usageError('--until and --until-settled are about one object: name it as kind/name');
  process.exitCode = await withScope(flags, async (scope) => {
    const subject = { output: flags.output, ...(await subjectOf(scope, target)) };
    return untilSignal((signal) => watch(scope.client, subject, { ...(goal && { goal }), signal }));
  });
}

function goalOf({ until, untilSettled }: WatchFlags): Goal | undefined {
  if (until !== undefined && untilSettled) throw usageError('give --until or --until-settled, not both');
  if (untilSettled) return 'settled';
  return until === undefined ? undefined : { state: until };
}

/** Looked up first, so that mistakes are told at once and not taken for silence. */
async function subjectOf(scope: Scope, target: Target): Promise<Omit<WatchSubject, 'output'>> {
  if (isObjectTarget(target)) {
    const { type, ref, object } = await findObject(scope, target);
    const selection = { types: [type], namespace: ref.namespace, name: ref.name };
    return { selection, single: true, withNamespace: false, endedBefore: endedFlows(object) };
  }
  const { types, forbidden } = await findObjects(scope, target);
  sayForbidden(forbidden);
  const { namespace } = scope;
  return {
    selection: { types, namespace },
    single: false,
    withNamespace: namespace === undefined,
    endedBefore: new Set(),
  };
}

/** The exit code of the work, or of the signal that ended it. */
async function untilSignal(work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const ending = new AbortController();
  let received: number | undefined;
  const listeners = ENDING_SIGNALS.map((name) => {
    const listener = (): void => {
      received ??= SIGNAL_BASE + constants.signals[name];
      ending.abort();
    };
    process.on(name, listener);
    return () => process.off(name, listener);
  });
  // Whoever reads us has gone: there is nothing more to do.
  const onPipeClosed = (): void => ending.abort();
  process.stdout.on('error', onPipeClosed);
  try {
    const exitCode = await work(ending.signal);
    return received ?? exitCode;
  } finally {
    for (const stopListening of listeners) stopListening();
  }
}
