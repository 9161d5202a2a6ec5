import { describe, expect, it } from 'vitest';
import { goPattern } from './go-pattern.ts';

describe('goPattern', () => {
  it.each([
    [/^a\/b$/, '^a/b$'],
    [/^a$/i, '(?i)^a$'],
    [/^.$/su, '(?s)^.$'],
    [/^(?<year>\d{4})$/, String.raw`^(?P<year>\d{4})$`],
    [/^[\u00e0-\u00ff]\u{1F600}$/u, String.raw`^[\x{00e0}-\x{00ff}]\x{1F600}$`],
    [/\(\?=a\)/, String.raw`\(\?=a\)`],
    [/\\1/, String.raw`\\1`],
  ])('%s', (expression, expected) => {
    expect(goPattern(expression)).toBe(expected);
  });

  it.each([/(?=a)/, /(?!a)/, /(?<=a)b/, /(?<!a)b/, /(a)\1/, /(?<x>a)\k<x>/, /[^]/])(
    '%s cannot be said in Go',
    (expression) => {
      expect(goPattern(expression)).toBeUndefined();
    },
  );
});
