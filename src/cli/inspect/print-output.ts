/** The forms for programs, and what is said beside the result. */
import { dump } from 'js-yaml';
import { print, printError } from '../terminal.ts';

export type OutputFormat = 'table' | 'wide' | 'json' | 'yaml';

export function printData(data: unknown, format: 'json' | 'yaml'): void {
  // Through JSON, so that both leave out the same.
  const json = JSON.stringify(data, null, 2);
  print(format === 'json' ? json : dump(JSON.parse(json), { noRefs: true, lineWidth: 110 }).trimEnd());
}

/** On standard error: it is no part of the result. */
export function sayForbidden(kinds: readonly string[]): void {
  if (kinds.length > 0) printError(`left out, since you may not list them: ${kinds.join(', ')}`);
}
