/** The systems that the user names, out of those that there are. */
import type { System } from '../resource-managers/kind.ts';
import { nearest } from '../runtime/config/nearest.ts';
import { UserError } from './user-error.ts';

/** All where none is named. */
export function chooseSystems(all: readonly System[], wanted: readonly string[]): readonly System[] {
  const names = all.map(({ name }) => name);
  for (const name of wanted) if (!names.includes(name)) throw new UserError(unknownSystem(name, names), 2);
  return wanted.length === 0 ? all : all.filter(({ name }) => wanted.includes(name));
}

function unknownSystem(name: string, names: readonly string[]): string {
  if (names.length === 0) return `there is no system "${name}": this release comes with none`;
  const guess = nearest(name, names);
  const hint = guess === undefined ? '' : `; did you mean ${guess}?`;
  return `there is no system "${name}"${hint} (there are: ${names.join(', ')})`;
}
