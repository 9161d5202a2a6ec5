import { describe, expect, it } from 'vitest';
import { contentHash, covers, projection } from './drift.ts';

const WANTED = {
  spec: {
    replicas: 3,
    template: { containers: [{ name: 'main', image: 'a:1', args: ['-x', '-y'] }], labels: { a: 'b' } },
    empty: {},
    none: [],
  },
};
const SERVER = {
  metadata: { uid: 'u' },
  spec: {
    replicas: 3,
    paused: false,
    template: {
      containers: [
        { name: 'sidecar', image: 's' },
        { name: 'main', image: 'a:1', args: ['-x', '-y'], imagePullPolicy: 'Always' },
      ],
      labels: { a: 'b', added: 'by others' },
      restartPolicy: 'Always',
    },
    empty: { defaulted: true },
    none: [],
  },
  status: { ready: 3 },
};

function changed(change: (copy: typeof SERVER) => void): typeof SERVER {
  const copy = structuredClone(SERVER);
  change(copy);
  return copy;
}

describe('covers', () => {
  it('ignores what others own', () => expect(covers(WANTED, SERVER)).toBe(true));

  it.each<[string, (copy: typeof SERVER) => void]>([
    ['a value', (copy) => (copy.spec.replicas = 2)],
    ['a label', (copy) => (copy.spec.template.labels.a = 'c')],
    [
      'a field in a named entry',
      (copy) => Object.assign(copy.spec.template.containers[1] ?? {}, { image: 'a:2' }),
    ],
    ['a list of plain values, longer', (copy) => copy.spec.template.containers[1]?.args?.push('-z')],
    ['a named entry that is gone', (copy) => copy.spec.template.containers.pop()],
    ['a list that should be empty', (copy) => (copy.spec.none as unknown[]).push(1)],
    ['a whole part that is gone', (copy) => Reflect.deleteProperty(copy.spec, 'template')],
  ])('sees: %s', (_name, change) => expect(covers(WANTED, changed(change))).toBe(false));

  it('a field that is wanted as undefined is not wanted', () => {
    expect(covers({ a: 1, b: undefined }, { a: 1, b: 2 })).toBe(true);
  });
});

describe('contentHash', () => {
  it('does not depend on the order of fields, but on that of lists', () => {
    expect(contentHash({ a: 1, b: [1, 2] })).toBe(contentHash({ b: [1, 2], a: 1, c: undefined }));
    expect(contentHash([1, 2])).not.toBe(contentHash([2, 1]));
  });
});

it('projection has the shape of what is wanted', () => {
  expect(projection(WANTED, SERVER)).toEqual(WANTED);
  expect(projection({ a: { b: 1 } }, { a: 'text' })).toEqual({ a: 'text' });
});
