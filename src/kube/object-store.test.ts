import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import type { ConfigMap } from './builtin-resources.ts';
import type { Change } from './change.ts';
import { labelValue, ownerUid } from './indexers.ts';
import { ObjectStore } from './object-store.ts';
import type { Stored } from './resource-type.ts';

type Object = Stored<ConfigMap>;
const KEY = 'ns/a';

function object(
  version: number | string,
  { uid = 'u1', name = 'a', ...more }: Partial<ConfigMap> & { uid?: string; name?: string } = {},
): Object {
  return {
    ...more,
    metadata: { namespace: 'ns', ...more.metadata, name, uid, resourceVersion: String(version) },
  };
}

const brief = (changes: readonly Change<ConfigMap>[]): string[] =>
  changes.map(
    (change) =>
      `${change.own ? 'own ' : ''}${change.type} ${change.type === 'updated' ? `${change.old.metadata.resourceVersion}→` : ''}${change.object.metadata.resourceVersion}`,
  );

const listOf = (...objects: Object[]) => new Map(objects.map((item) => [`ns/${item.metadata.name}`, item]));

describe('what the server says', () => {
  it('becomes added, updated, deleted; the same again becomes nothing', () => {
    const store = new ObjectStore<ConfigMap>();
    expect(brief(store.put(object(1), 'watch'))).toEqual(['added 1']);
    expect(brief(store.put(object(1), 'watch'))).toEqual([]);
    expect(brief(store.put(object(2), 'watch'))).toEqual(['updated 1→2']);
    expect(brief(store.remove(object(3), 'watch'))).toEqual(['deleted 3']);
    expect(brief(store.remove(object(3), 'watch'))).toEqual([]);
    expect(store.size).toBe(0);
  });

  it('another uid of the same name is a deletion and an addition', () => {
    const store = new ObjectStore<ConfigMap>();
    store.put(object(1), 'watch');
    expect(brief(store.put(object(5, { uid: 'u2' }), 'watch'))).toEqual(['deleted 1', 'added 5']);
  });

  it('a list is told as its difference to the store', () => {
    const store = new ObjectStore<ConfigMap>();
    for (const name of ['a', 'b', 'c', 'd']) store.put(object(1, { name, uid: name }), 'watch');
    const list = listOf(
      object(1, { name: 'a', uid: 'a' }),
      object(2, { name: 'b', uid: 'b' }),
      object(3, { name: 'c', uid: 'c2' }),
      object(4, { name: 'e', uid: 'e' }),
    );
    expect(brief(store.replace(list, 'list', 0))).toEqual([
      'deleted 1',
      'updated 1→2',
      'deleted 1',
      'added 3',
      'added 4',
    ]);
    expect([...store.values()].map(({ metadata }) => metadata.name).toSorted()).toEqual(['a', 'b', 'c', 'e']);
  });

  it('is kept without managed fields and last applied configuration', () => {
    const store = new ObjectStore<ConfigMap>();
    const annotations = { kept: 'yes', 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
    store.put(object(1, { metadata: { managedFields: [{ manager: 'm' }], annotations } }), 'watch');
    expect(store.get(KEY)?.metadata).toEqual({
      name: 'a',
      namespace: 'ns',
      uid: 'u1',
      resourceVersion: '1',
      annotations: { kept: 'yes' },
    });
  });

  it('cannot be changed by a reader where it is frozen', () => {
    const store = new ObjectStore<ConfigMap>({ freeze: true });
    store.put(object(1, { data: { a: '1' } }), 'watch');
    const kept = store.get(KEY);
    expect(() => Object.assign(kept?.data ?? {}, { a: '2' })).toThrow(TypeError);
    expect(store.get(KEY)).toBe(kept);
  });
});

describe('our own writes', () => {
  it('event after response: reads see it at once, and the event is our own', () => {
    const store = new ObjectStore<ConfigMap>();
    store.put(object(1), 'watch');
    store.observeWrite(object(2, { data: { mine: 'yes' } }));
    expect(store.get(KEY)?.data).toEqual({ mine: 'yes' });
    expect(brief(store.put(object(2), 'watch'))).toEqual(['own updated 1→2']);
    expect(brief(store.put(object(3), 'watch'))).toEqual(['updated 2→3']);
  });

  it('event before response: nothing is covered', () => {
    const store = new ObjectStore<ConfigMap>();
    store.put(object(1), 'watch');
    store.put(object(2), 'watch');
    store.observeWrite(object(2));
    expect(brief(store.put(object(3), 'watch'))).toEqual(['updated 2→3']);
    expect(store.get(KEY)?.metadata.resourceVersion).toBe('3');
  });

  it('event and a newer one before response: the newer one stays', () => {
    const store = new ObjectStore<ConfigMap>();
    for (const version of [1, 2, 3]) store.put(object(version), 'watch');
    store.observeWrite(object(2));
    expect(store.get(KEY)?.metadata.resourceVersion).toBe('3');
  });

  it('an older event of somebody else is told, but does not uncover', () => {
    const store = new ObjectStore<ConfigMap>();
    store.put(object(1), 'watch');
    store.observeWrite(object(3));
    expect(brief(store.put(object(2), 'watch'))).toEqual(['updated 1→2']);
    expect(store.get(KEY)?.metadata.resourceVersion).toBe('3');
    expect(brief(store.put(object(3), 'watch'))).toEqual(['own updated 2→3']);
  });

  it('several in a row: each event is our own, and reads see the last', () => {
    const store = new ObjectStore<ConfigMap>();
    store.put(object(1), 'watch');
    for (const version of [2, 3, 4]) store.observeWrite(object(version));
    expect(brief(store.put(object(2), 'watch'))).toEqual(['own updated 1→2']);
    expect(store.get(KEY)?.metadata.resourceVersion).toBe('4');
    expect(brief(store.put(object(3), 'watch'))).toEqual(['own updated 2→3']);
    expect(brief(store.put(object(4), 'watch'))).toEqual(['own updated 3→4']);
    expect(brief(store.put(object(5), 'watch'))).toEqual(['updated 4→5']);
  });

  it('a creation is read before its event', () => {
    const store = new ObjectStore<ConfigMap>();
    store.observeWrite(object(1));
    expect(store.get(KEY)).toBeDefined();
    expect(brief(store.put(object(1), 'watch'))).toEqual(['own added 1']);
  });

  it('a creation under a name whose old object is still being told of', () => {
    const store = new ObjectStore<ConfigMap>();
    store.put(object(1, { uid: 'old' }), 'watch');
    store.observeWrite(object(9, { uid: 'new' }));
    expect(brief(store.put(object(2, { uid: 'old' }), 'watch'))).toEqual(['updated 1→2']);
    expect(brief(store.remove(object(3, { uid: 'old' }), 'watch'))).toEqual(['deleted 3']);
    expect(store.get(KEY)?.metadata.uid).toBe('new');
    expect(brief(store.put(object(9, { uid: 'new' }), 'watch'))).toEqual(['own added 9']);
  });

  it('a deletion, or a newer object of the name, ends what we wrote', () => {
    const store = new ObjectStore<ConfigMap>();
    store.put(object(1), 'watch');
    store.observeWrite(object(2));
    store.remove(object(3), 'watch');
    expect(store.get(KEY)).toBeUndefined();
    store.put(object(4), 'watch');
    store.observeWrite(object(5));
    store.put(object(7, { uid: 'u2' }), 'watch');
    expect(store.get(KEY)?.metadata.uid).toBe('u2');
  });

  it('a write that moves it out of the selection: its deletion is our own', () => {
    const store = new ObjectStore<ConfigMap>();
    store.put(object(1), 'watch');
    store.observeWrite(object(2));
    expect(brief(store.remove(object(2), 'watch'))).toEqual(['own deleted 2']);
  });

  it('a list that began after the write decides; it is nobody’s own', async () => {
    const clock = manualClock();
    const store = new ObjectStore<ConfigMap>({ clock });
    store.put(object(1), 'watch');
    store.observeWrite(object(2));
    await clock.advance(1);
    expect(brief(store.replace(listOf(object(4)), 'list', clock.monotonic()))).toEqual(['updated 1→4']);
    expect(store.get(KEY)?.metadata.resourceVersion).toBe('4');
  });

  it('a list that began before the write does not undo it', async () => {
    const clock = manualClock();
    const store = new ObjectStore<ConfigMap>({ clock });
    store.put(object(1), 'watch');
    const startedAt = clock.monotonic();
    await clock.advance(1);
    store.observeWrite(object(3));
    expect(brief(store.replace(listOf(object(2)), 'list', startedAt))).toEqual(['updated 1→2']);
    expect(store.get(KEY)?.metadata.resourceVersion).toBe('3');
    expect(brief(store.put(object(3), 'watch'))).toEqual(['own updated 2→3']);
  });

  it('whose event was swallowed by a gap is not believed for ever', async () => {
    const clock = manualClock();
    const store = new ObjectStore<ConfigMap>({ clock });
    store.put(object(1), 'watch');
    const startedAt = clock.monotonic();
    await clock.advance(1);
    store.observeWrite(object(3));
    store.replace(listOf(object(4)), 'list', startedAt);
    await clock.advance(60_000);
    expect(store.get(KEY)?.metadata.resourceVersion).toBe('3');
    store.watchBegan();
    await clock.advance(9_999);
    expect(store.get(KEY)?.metadata.resourceVersion).toBe('3');
    await clock.advance(1);
    expect(store.get(KEY)?.metadata.resourceVersion).toBe('4');
  });

  it('do not freeze what the writer holds', () => {
    const store = new ObjectStore<ConfigMap>({ freeze: true });
    const written = object(1, { data: {} });
    store.observeWrite(written);
    expect(Object.isFrozen(written.data)).toBe(false);
  });
});

describe('indexes', () => {
  const owned = (version: number, uid: string, size: string): Object => {
    const ownerReferences = [{ apiVersion: 'v1', kind: 'X', name: 'x', uid }];
    return object(version, { metadata: { ownerReferences, labels: { size } } });
  };
  const names = (objects: readonly Object[]): string[] => objects.map(({ metadata }) => metadata.name);

  it('follow changes, deletions and own writes', () => {
    const store = new ObjectStore<ConfigMap>({ indexers: { owner: ownerUid(), size: labelValue('size') } });
    store.put(owned(1, 'o1', 's'), 'watch');
    store.put(object(1, { name: 'b', uid: 'b' }), 'watch');
    expect(names(store.byIndex('owner', 'o1'))).toEqual(['a']);
    store.put(owned(2, 'o2', 's'), 'watch');
    expect(names(store.byIndex('owner', 'o1'))).toEqual([]);
    expect(names(store.byIndex('owner', 'o2'))).toEqual(['a']);
    store.observeWrite(owned(3, 'o2', 'm'));
    expect(names(store.byIndex('size', 's'))).toEqual([]);
    expect(names(store.byIndex('size', 'm'))).toEqual(['a']);
    store.remove(owned(4, 'o2', 'm'), 'watch');
    expect(names(store.byIndex('owner', 'o2'))).toEqual([]);
  });

  it('can be added later', () => {
    const store = new ObjectStore<ConfigMap>();
    store.put(owned(1, 'o1', 's'), 'watch');
    store.addIndexers({ size: labelValue('size') });
    expect(names(store.byIndex('size', 's'))).toEqual(['a']);
    expect(() => store.byIndex('colour', 'red')).toThrow('no index "colour"; there are: size');
  });
});
