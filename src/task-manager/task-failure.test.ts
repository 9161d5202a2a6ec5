import { describe, expect, it } from 'vitest';
import { PermanentError } from './errors.ts';
import { taskFailureOf } from './task-failure.ts';

const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;

describe('what a task threw', () => {
  it.each([
    ['an Error', new Error('disk full'), 'disk full'],
    ['a string', 'disk full', 'disk full'],
    ['nothing', undefined, 'thrown: nothing'],
    ['null', null, 'thrown: null'],
    ['an object', { code: 7 }, 'thrown: {"code":7}'],
    ['an empty string', '', 'Error without a message'],
    ['an Error without a message', new TypeError(), 'TypeError without a message'],
    ['a frozen Error without a message', Object.freeze(new RangeError()), 'RangeError without a message'],
    ['a cycle', cycle, 'thrown: a value of type object that cannot be printed'],
    ['a big integer', 7n, 'thrown: a value of type bigint that cannot be printed'],
  ])('reads well in a status when it was %s', (_, thrown, message) => {
    expect(taskFailureOf(thrown)).toBeInstanceOf(Error);
    expect(taskFailureOf(thrown).message).toBe(message);
  });

  it('stays of the class that decides what happens next', () => {
    const error = new PermanentError('', { reason: 'BadSpec' });
    expect(taskFailureOf(error)).toBe(error);
    expect(error.message).toBe('PermanentError without a message');
  });
});
