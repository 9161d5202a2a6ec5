import { describe, expect, it } from 'vitest';
import { ListSplitter } from './list-splitter.ts';

const ITEMS = [
  {
    metadata: { name: 'a', annotations: { text: 'brackets }]{[ and "quotes" and \\ and ü' } },
    list: [[1], { x: [] }],
  },
  { metadata: { name: 'b', managedFields: [{ fieldsV1: { 'f:a': {} } }] } },
  {},
];
const LISTS = {
  'as built-in kinds are written': {
    kind: 'List',
    apiVersion: 'v1',
    metadata: { resourceVersion: '7', continue: 'x' },
    items: ITEMS,
  },
  'as custom resources are written': {
    apiVersion: 'v1',
    items: ITEMS,
    kind: 'List',
    metadata: { resourceVersion: '7' },
  },
  empty: { kind: 'List', items: [], metadata: { resourceVersion: '7' } },
};

function split(text: string, chunkSize: number): { items: unknown[]; envelope: unknown } {
  const bytes = Buffer.from(text);
  const splitter = new ListSplitter();
  const items: unknown[] = [];
  for (let at = 0; at < bytes.length; at += chunkSize)
    for (const item of splitter.push(bytes.subarray(at, at + chunkSize)))
      items.push(JSON.parse(item.toString()));
  return { items, envelope: JSON.parse(splitter.end()) };
}

describe('ListSplitter', () => {
  describe.each(Object.entries(LISTS))('%s', (_name, list) => {
    it.each([1, 2, 3, 7, 64, 100_000])('cut into chunks of %d bytes', (chunkSize) => {
      for (const text of [JSON.stringify(list), JSON.stringify(list, undefined, 2)])
        expect(split(text, chunkSize)).toEqual({ items: list.items, envelope: { ...list, items: [] } });
    });
  });

  it('tells when the answer is cut off', () => {
    expect(() => split(JSON.stringify(LISTS.empty).slice(0, -1), 10)).toThrow('ended in the middle');
  });
});
