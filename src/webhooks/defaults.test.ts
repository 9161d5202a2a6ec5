import { applyPatch } from 'rfc6902';
import { describe, expect, it } from 'vitest';
import { overlayDefaults, patchFrom } from './defaults.ts';

describe('overlayDefaults', () => {
  it.each<readonly [name: string, original: unknown, parsed: unknown, expected: unknown]>([
    ['adds what is missing', { a: 1 }, { a: 1, b: 2 }, { a: 1, b: 2 }],
    ['adds the whole', undefined, { a: 1 }, { a: 1 }],
    ['adds below', { a: { x: 1 } }, { a: { x: 1, y: 2 } }, { a: { x: 1, y: 2 } }],
    ['adds in list items', [{ a: 1 }, {}], [{ a: 1, b: 2 }, { b: 2 }], [{ a: 1, b: 2 }, { b: 2 }]],
    ['keeps what zod strips', { a: 1, future: { x: 1 } }, { a: 1 }, { a: 1, future: { x: 1 } }],
    ['keeps null', { a: null }, { a: null, b: 1 }, { a: null, b: 1 }],
    ['keeps what differs', { a: 1, l: [1] }, { a: 2, l: [1, 2] }, { a: 1, l: [1] }],
    ['does not add undefined', { a: 1 }, { a: 1, b: undefined }, { a: 1 }],
  ])('%s', (_, original, parsed, expected) => {
    expect(overlayDefaults(original, parsed)).toEqual(expected);
  });

  it('treats a field named __proto__ as a field', () => {
    const original = JSON.parse('{"__proto__": {"polluted": true}, "a": 1}') as object;
    const result = overlayDefaults(original, { a: 1, b: 2 }) as object;
    expect(JSON.stringify(result)).toBe('{"__proto__":{"polluted":true},"a":1,"b":2}');
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
  });
});

describe('patchFrom', () => {
  it('makes one object into the other, whatever they are', () => {
    const random = generator(11);
    for (let round = 0; round < 2_000; round++) {
      const before = randomObject(random, 3);
      const after = round % 2 === 0 ? randomObject(random, 3) : mutated(before, random);
      const target = structuredClone(before);
      const results = applyPatch(target, patchFrom(before, after));
      expect(results.every((result) => result === null)).toBe(true);
      expect(target).toEqual(after);
    }
  });

  it('of equal objects is empty', () => {
    expect(patchFrom({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })).toEqual([]);
  });

  it('only touches the items that changed', () => {
    const before = { list: [{ name: 'a' }, { name: 'b' }] };
    expect(patchFrom(before, { list: [{ name: 'a' }, { name: 'b', 'x/y~z': 1 }] })).toEqual([
      { op: 'add', path: '/list/1/x~1y~0z', value: 1 },
    ]);
  });

  it('takes long lists in their stride', () => {
    const before = { list: Array.from({ length: 50_000 }, (_, index) => ({ name: String(index) })) };
    const after = { list: before.list.map((item) => ({ ...item, count: 1 })) };
    const began = performance.now();
    expect(patchFrom(before, after)).toHaveLength(50_000);
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});

type Random = (below: number) => number;

function generator(seed: number): Random {
  let state = seed;
  return (below) => (state = (state * 48271) % 2147483647) % below;
}

function randomObject(random: Random, depth: number): Record<string, unknown> {
  const keys = ['a', 'b', 'c/d', '~e', ''].filter(() => random(2) === 0);
  return Object.fromEntries(keys.map((key) => [key, randomValue(random, depth - 1)]));
}

function randomValue(random: Random, depth: number): unknown {
  const kind = depth > 0 ? random(6) : random(4);
  if (kind === 0) return random(5);
  if (kind === 1) return `text ${random(3)}`;
  if (kind === 2) return random(2) === 0;
  if (kind === 3) return null;
  if (kind === 4) return Array.from({ length: random(4) }, () => randomValue(random, depth - 1));
  return randomObject(random, depth);
}

/** The same with defaults added here and there. */
function mutated(value: Record<string, unknown>, random: Random): Record<string, unknown> {
  const inner = Object.entries(value).map(([key, item]) => [
    key,
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? mutated(item as Record<string, unknown>, random)
      : item,
  ]);
  return Object.fromEntries([...inner, [`added${random(3)}`, randomValue(random, 2)]]);
}
