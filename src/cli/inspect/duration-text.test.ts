import { describe, expect, it } from 'vitest';
import { NOW, ago } from '../../../test/fixtures/engine-objects.ts';
import { ageText, durationText, spentText, untilText } from './duration-text.ts';

const [S, M, H, D] = [1000, 60_000, 3_600_000, 86_400_000];

describe('durations', () => {
  it.each([
    [-5, '0s'],
    [999, '0s'],
    [119 * S, '119s'],
    [120 * S, '2m'],
    [3 * M + 12 * S, '3m12s'],
    [42 * M + 59 * S, '42m'],
    [3 * H + 5 * M, '3h5m'],
    [30 * H, '30h'],
    [2 * D + 3 * H, '2d3h'],
    [400 * D, '400d'],
  ])('%d ms is %s', (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });

  it('short tasks keep a fraction; moments are told from now', () => {
    expect([spentText(1234), spentText(12_345)]).toEqual(['1.2s', '12s']);
    expect([ageText(ago(14), NOW), ageText(undefined, NOW)]).toEqual(['14s', '-']);
    expect([untilText(ago(-14), NOW), untilText(ago(3), NOW)]).toEqual(['in 14s', 'now']);
  });
});
