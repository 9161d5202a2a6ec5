import { describe, expect, it } from 'vitest';
import { similarNames } from './find-objects.ts';

describe('similar names', () => {
  it.each([
    ['atlantik', ['pacific', 'baltic', 'atlantic'], ['atlantic', 'baltic', 'pacific']],
    ['ocean', ['sea', 'ocean-2', 'ocean-1'], ['ocean-1', 'ocean-2', 'sea']],
    ['x', ['a', 'b', 'c', 'd', 'e', 'f'], ['a', 'b', 'c', 'd', 'e']],
  ])('to %s among %j', (wanted, names, similar) => {
    expect(similarNames(wanted, names)).toEqual(similar);
  });
});
