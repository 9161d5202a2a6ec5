import { describe, expect, it } from 'vitest';
import { parseObjectTarget, parseTarget, refuseRest } from './target.ts';

describe('the words of a call', () => {
  it.each([
    [[], { rest: '' }],
    [['voyage'], { kind: 'voyage', rest: '' }],
    [['voyage/a'], { kind: 'voyage', name: 'a', rest: '' }],
    [['voyage', 'a'], { kind: 'voyage', name: 'a', rest: '' }],
    [
      ['voyages.example.com/a', 'cross ocean'],
      { kind: 'voyages.example.com', name: 'a', rest: 'cross ocean' },
    ],
    [['voyage', 'a', 'cross', 'ocean'], { kind: 'voyage', name: 'a', rest: 'cross ocean' }],
  ])('%j', (words, target) => {
    expect(parseTarget(words)).toEqual(target);
  });

  it.each([[['/a']], [['voyage/']]])('%j is a usage error', (words) => {
    expect(() => parseTarget(words)).toThrow(expect.objectContaining({ exitCode: 2 }));
  });

  it('a command about one object needs its name, and takes nothing that it does not understand', () => {
    expect(() => parseObjectTarget(['voyage'])).toThrow('which voyage?');
    expect(() => refuseRest(parseTarget(['voyage/a', 'b']))).toThrow('do not understand "b"');
  });
});
