/** What the words of a call mean: `kind/name` or `kind name`, and what comes after. */
import { UserError } from '../user-error.ts';

export interface Target {
  readonly kind?: string;
  readonly name?: string;
  /** What follows the object: a task, a state. */
  readonly rest: string;
}

export interface ObjectTarget extends Target {
  readonly kind: string;
  readonly name: string;
}

const USAGE_ERROR = 2;

export function parseTarget([first, ...others]: readonly string[]): Target {
  if (first === undefined) return { rest: '' };
  const slash = first.indexOf('/');
  const [kind, name, rest] =
    slash < 0 ? [first, others[0], others.slice(1)] : [first.slice(0, slash), first.slice(slash + 1), others];
  if (kind === '' || name === '') throw usageError(`"${first}" is neither a kind nor kind/name`);
  return { kind, ...(name !== undefined && { name }), rest: rest.join(' ') };
}

/** For commands that are about one object. */
export function parseObjectTarget(words: readonly string[]): ObjectTarget {
  const target = parseTarget(words);
  if (isObjectTarget(target)) return target;
  const { kind = 'object' } = target;
  throw usageError(`which ${kind}? Name it as kind/name`);
}

export function isObjectTarget(target: Target): target is ObjectTarget {
  return target.name !== undefined;
}

/** For commands that take nothing after the object. */
export function refuseRest<T extends Target>(target: T): T {
  if (target.rest !== '') throw usageError(`do not understand "${target.rest}" after the object`);
  return target;
}

export function usageError(message: string): UserError {
  return new UserError(`${message} (add --help for what is possible)`, USAGE_ERROR);
}
