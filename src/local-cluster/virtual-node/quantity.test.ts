import { describe, expect, it } from 'vitest';
import { isLarger, thousandths, wholeUnits } from './quantity.ts';

describe('a quantity', () => {
  it.each([
    ['1', 1000n],
    ['500m', 500n],
    ['1.5', 1500n],
    ['.5', 500n],
    ['2k', 2_000_000n],
    ['1Ki', 1_024_000n],
    ['1.5Gi', 1_610_612_736_000n],
    ['2e3', 2_000_000n],
    ['1E', 10n ** 21n],
    ['12E-1', 1200n],
    ['100n', 1n],
    ['-2', -2000n],
  ])('%s is %s thousandths', (text, expected) => expect(thousandths(text)).toBe(expected));

  it.each(['', 'one', '1.2.3', '1 Gi', '.', '5x'])('%j is refused', (text) => {
    expect(() => thousandths(text)).toThrow('is not a quantity');
  });

  it('is rounded up to whole units', () => {
    expect(wholeUnits('1500m')).toBe(2n);
    expect(wholeUnits('2')).toBe(2n);
  });

  it('compares across notations', () => {
    expect(isLarger('1Gi', '1G')).toBe(true);
    expect(isLarger('1024Mi', '1Gi')).toBe(false);
  });
});
