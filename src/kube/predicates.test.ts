import { describe, expect, it } from 'vitest';
import type { Pod } from './builtin-resources.ts';
import type { Change } from './change.ts';
import {
  and,
  annotationsChanged,
  deletionStarted,
  fieldsChanged,
  finalizersChanged,
  generationChanged,
  labelsChanged,
  not,
  notOwn,
  or,
  parsePath,
  type Predicate,
} from './predicates.ts';
import type { ObjectMeta, Stored } from './resource-type.ts';

const pod = (metadata: Partial<ObjectMeta> = {}, status: Pod['status'] = {}): Stored<Pod> => ({
  metadata: { name: 'p', uid: 'u', resourceVersion: '1', generation: 1, ...metadata },
  status,
});
const updated = (object: Stored<Pod>, more: Partial<Pick<Change<Pod>, 'origin'>> = {}): Change<Pod> => ({
  type: 'updated',
  old: pod(),
  object,
  origin: 'watch',
  own: false,
  ...more,
});

const phase = fieldsChanged(['status.phase', 'metadata.annotations[example.org/size]']);
const CASES: readonly [string, Predicate, Stored<Pod>, boolean][] = [
  ['generation', generationChanged, pod({ generation: 2 }), true],
  ['generation, but only the status differs', generationChanged, pod({ resourceVersion: '2' }), false],
  ['labels', labelsChanged, pod({ labels: { a: 'b' } }), true],
  ['labels, empty against none', labelsChanged, pod({ labels: {} }), false],
  ['annotations', annotationsChanged, pod({ annotations: { a: 'b' } }), true],
  ['annotations, but labels differ', annotationsChanged, pod({ labels: { a: 'b' } }), false],
  ['finalizers', finalizersChanged, pod({ finalizers: ['f'] }), true],
  ['deletion', deletionStarted, pod({ deletionTimestamp: 'now' }), true],
  ['fields', phase, pod({}, { phase: 'Running' }), true],
  ['fields with dots in their names', phase, pod({ annotations: { 'example.org/size': '1' } }), true],
  ['fields, but others differ', phase, pod({}, { podIP: '10.0.0.1' }), false],
];

describe('predicates', () => {
  it.each(CASES)('%s', (_name, predicate, object, expected) => {
    expect(predicate(updated(object))).toBe(expected);
  });

  it.each(CASES)('%s: what comes, goes or is resynced always passes', (_name, predicate) => {
    const object = pod();
    expect(predicate({ type: 'added', object, origin: 'watch', own: false })).toBe(true);
    expect(predicate({ type: 'deleted', object, origin: 'watch', own: false })).toBe(true);
    expect(predicate(updated(object, { origin: 'resync' }))).toBe(true);
  });

  it('combine', () => {
    const labelled = updated(pod({ labels: { a: 'b' } }));
    expect(or(generationChanged, labelsChanged)(labelled)).toBe(true);
    expect(and(generationChanged, labelsChanged)(labelled)).toBe(false);
    expect(not(generationChanged)(labelled)).toBe(true);
    expect(and(notOwn, labelsChanged)({ ...labelled, own: true })).toBe(false);
  });

  it('kinds without a generation change with their version', () => {
    const plain = (resourceVersion: string): Stored => ({
      metadata: { name: 'c', uid: 'u', resourceVersion },
    });
    const change = {
      type: 'updated',
      old: plain('1'),
      object: plain('2'),
      origin: 'watch',
      own: false,
    } as const;
    expect(generationChanged(change)).toBe(true);
  });
});

it.each([
  ['status.phase', ['status', 'phase']],
  ['metadata.annotations[a.b/c].d', ['metadata', 'annotations', 'a.b/c', 'd']],
])('path %s', (path, parts) => expect(parsePath(path)).toEqual(parts));

it('an empty path is refused', () => expect(() => parsePath('')).toThrow('no path of a field'));
