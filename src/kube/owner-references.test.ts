import { describe, expect, it } from 'vitest';
import {
  AlreadyOwned,
  controllerOf,
  isOwnedBy,
  ownerReferenceTo,
  withController,
  withOwner,
} from './owner-references.ts';
import type { KubeObject, Stored } from './resource-type.ts';

const owner = (name: string, namespace: string | undefined = 'ns'): Stored => ({
  apiVersion: 'example.org/v1',
  kind: 'Cluster',
  metadata: { name, uid: `uid-${name}`, resourceVersion: '1', ...(namespace !== undefined && { namespace }) },
});
const child: KubeObject = { kind: 'Pod', metadata: { name: 'p', namespace: 'ns' } };

describe('owner references', () => {
  it('a controller is one, and blocks the deletion of its owner', () => {
    const owned = withController(child, owner('a'));
    expect(owned.metadata?.ownerReferences).toEqual([
      {
        apiVersion: 'example.org/v1',
        kind: 'Cluster',
        name: 'a',
        uid: 'uid-a',
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
    expect(controllerOf(owned)?.uid).toBe('uid-a');
    expect(isOwnedBy(owned, 'uid-a')).toBe(true);
    expect(withController(owned, owner('a')).metadata?.ownerReferences).toHaveLength(1);
    expect(child.metadata?.ownerReferences).toBeUndefined();
  });

  it('a second controller is refused, a second owner is not', () => {
    const owned = withController(child, owner('a'));
    expect(() => withController(owned, owner('b'))).toThrow(AlreadyOwned);
    expect(() => withController(owned, owner('b'))).toThrow(
      'Pod "ns/p" is controlled by Cluster "a" already',
    );
    const shared = withOwner(owned, owner('b'));
    expect(shared.metadata?.ownerReferences).toHaveLength(2);
    expect(controllerOf(shared)?.name).toBe('a');
  });

  it('an owner in another namespace is refused, one without a namespace is not', () => {
    expect(() => withController(child, owner('a', 'other'))).toThrow('in another namespace');
    expect(() => withOwner({ metadata: { name: 'cluster-wide' } }, owner('a'))).toThrow(
      'in another namespace',
    );
    const clusterWide = { ...owner('a'), metadata: { name: 'a', uid: 'u', resourceVersion: '1' } };
    expect(isOwnedBy(withOwner(child, clusterWide), 'u')).toBe(true);
  });

  it('an owner must say what it is', () => {
    const { metadata } = owner('a');
    expect(() => ownerReferenceTo({ metadata })).toThrow('needs apiVersion and kind');
  });
});
