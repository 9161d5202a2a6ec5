/** What zod finds wrong, in the words of the project and with the path a user would write. */
import type * as z from 'zod';
import type { Fault } from './rules.ts';

type RawIssue = z.core.$ZodRawIssue;

/** Wording for a parse call: zod prefers a message that the schema itself gives. */
export function describeIssue(issue: RawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is required' : `must be ${withArticle(issue.expected)}`;
    case 'too_small':
      return describeBound(issue, issue.minimum, issue.exact ? 'exactly' : 'at least');
    case 'too_big':
      return describeBound(issue, issue.maximum, issue.exact ? 'exactly' : 'at most');
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'invalid_format':
      return describeFormat(issue);
    case 'invalid_value':
      return issue.values.length === 1
        ? `must be ${quoted(issue.values)}`
        : `must be one of ${quoted(issue.values)}`;
    case 'unrecognized_keys':
      return `has unknown fields: ${issue.keys.join(', ')}`;
    case 'invalid_key':
      return 'has a key that is not allowed';
    case 'invalid_element':
      return 'has an element that is not allowed';
    case 'invalid_union':
      return describeUnion(issue);
    case 'custom':
      return 'is not valid';
  }
}

export function faultsOf(error: z.ZodError, root: string): readonly Fault[] {
  return error.issues.map((issue) => ({ path: pathText(root, issue.path), message: issue.message }));
}

/** `spec.topology[1].replica`, `metadata.labels[example.com/tier]` */
export function pathText(root: string, path: readonly PropertyKey[]): string {
  const steps = path.map((step) =>
    typeof step === 'number'
      ? `[${step}]`
      : /^\w+$/.test(String(step))
        ? `.${String(step)}`
        : `[${String(step)}]`,
  );
  return `${root}${steps.join('')}`;
}

/** An expression is told only where it is the author's own. */
function describeFormat(issue: Extract<RawIssue, { code: 'invalid_format' }>): string {
  const { format } = issue;
  if (format === 'regex') return `must match ${issue.pattern}`;
  if (format === 'starts_with') return `must start with "${String(issue['prefix'])}"`;
  if (format === 'ends_with') return `must end with "${String(issue['suffix'])}"`;
  if (format === 'includes') return `must contain "${String(issue['includes'])}"`;
  return `must be a valid ${format}`;
}

function describeBound(
  issue: Extract<RawIssue, { code: 'too_small' | 'too_big' }>,
  bound: number | bigint,
  word: string,
): string {
  const strictly = issue.inclusive === false;
  switch (issue.origin) {
    case 'string':
      return issue.code === 'too_small' && bound === 1 && word === 'at least'
        ? 'must not be empty'
        : `must have ${word} ${counted(bound, 'character', 'characters')}`;
    case 'array':
    case 'set':
      return `must have ${word} ${counted(bound, 'item', 'items')}`;
    case 'map':
    case 'record':
    case 'object':
      return `must have ${word} ${counted(bound, 'entry', 'entries')}`;
    case 'number':
    case 'int':
    case 'bigint':
    case 'date':
    case 'file':
    default:
      if (strictly) return `must be ${issue.code === 'too_small' ? 'greater' : 'less'} than ${bound}`;
      return `must be ${word} ${bound}`;
  }
}

/** Several faults of several forms help nobody: of one form they are told, of more only that none fits. */
function describeUnion(issue: Extract<RawIssue, { code: 'invalid_union' }>): string {
  if ('options' in issue && Array.isArray(issue.options)) return `must be one of ${quoted(issue.options)}`;
  const messages = issue.errors.map((form) => form.map(({ message }) => message).join(' and '));
  const different = [...new Set(messages.filter((message) => message !== ''))];
  return different.length === 0 ? 'fits none of the allowed forms' : different.join(', or ');
}

function counted(count: number | bigint, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

function withArticle(type: string): string {
  switch (type) {
    case 'int':
      return 'an integer';
    case 'array':
      return 'a list';
    case 'record':
      return 'an object';
    default:
      return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;
  }
}

function quoted(values: readonly unknown[]): string {
  return values.map((value) => (typeof value === 'string' ? `"${value}"` : String(value))).join(', ');
}
