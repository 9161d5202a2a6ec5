import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { describeIssue, faultsOf, pathText } from './schema-faults.ts';

function faultOf(field: z.ZodType, value: unknown): string {
  const parsed = z.object({ value: field }).safeParse({ value }, { error: describeIssue });
  return parsed.error === undefined
    ? ''
    : faultsOf(parsed.error, 'spec')
        .map(({ path, message }) => `${path} ${message}`)
        .join('; ');
}

describe('faults of a schema', () => {
  it.each<readonly [field: z.ZodType, value: unknown, fault: string]>([
    [z.string(), undefined, 'spec.value is required'],
    [z.string(), 1, 'spec.value must be a string'],
    [z.int(), 1.5, 'spec.value must be an integer'],
    [z.array(z.string()), 'x', 'spec.value must be a list'],
    [z.object({}), 'x', 'spec.value must be an object'],
    [z.int().min(1), 0, 'spec.value must be at least 1'],
    [z.int().max(9), 10, 'spec.value must be at most 9'],
    [z.number().gt(0), 0, 'spec.value must be greater than 0'],
    [z.number().lt(1), 1, 'spec.value must be less than 1'],
    [z.int().multipleOf(5), 3, 'spec.value must be a multiple of 5'],
    [z.string().min(1), '', 'spec.value must not be empty'],
    [z.string().min(3), 'a', 'spec.value must have at least 3 characters'],
    [z.string().length(3), 'a', 'spec.value must have exactly 3 characters'],
    [z.array(z.int()).max(1), [1, 2], 'spec.value must have at most 1 item'],
    [z.array(z.int()), [1, 'x'], 'spec.value[1] must be a number'],
    [z.enum(['a', 'b']), 'c', 'spec.value must be one of "a", "b"'],
    [z.literal('a'), 'c', 'spec.value must be "a"'],
    [z.string().regex(/^a$/), 'b', 'spec.value must match /^a$/'],
    [z.string().regex(/^a$/, 'must be an a'), 'b', 'spec.value must be an a'],
    [z.email(), 'b', 'spec.value must be a valid email'],
    [z.string().startsWith('a'), 'b', 'spec.value must start with "a"'],
    [z.string().endsWith('a'), 'b', 'spec.value must end with "a"'],
    [z.string().includes('a'), 'b', 'spec.value must contain "a"'],
    [z.strictObject({}), { x: 1 }, 'spec.value has unknown fields: x'],
    [
      z.record(z.string().regex(/^a$/), z.int()),
      { 'b/c': 1 },
      'spec.value[b/c] has a key that is not allowed',
    ],
    [z.union([z.int(), z.string().max(1)]), true, 'spec.value must be a number, or must be a string'],
    [
      z.discriminatedUnion('by', [z.object({ by: z.literal('a') })]),
      { by: 'x' },
      'spec.value.by must be one of "a"',
    ],
    [z.string().refine(() => false), 'x', 'spec.value is not valid'],
    [z.object({ a: z.int(), b: z.int() }), {}, 'spec.value.a is required; spec.value.b is required'],
  ])('%#', (field, value, fault) => {
    expect(faultOf(field, value)).toContain(fault);
  });

  it.each([
    [[], 'spec'],
    [['a', 1, 'b'], 'spec.a[1].b'],
    [['labels', 'example.com/tier'], 'spec.labels[example.com/tier]'],
  ])('path %j', (path, text) => {
    expect(pathText('spec', path)).toBe(text);
  });
});
