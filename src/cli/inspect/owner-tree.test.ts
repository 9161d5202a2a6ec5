import { describe, expect, it } from 'vitest';
import { engineObject, flow } from '../../../test/fixtures/engine-objects.ts';
import type { EngineObject } from './engine-object.ts';
import { objectState, ownerTree, treeLines, treeReport } from './owner-tree.ts';

function owned(kind: string, name: string, owners: readonly string[], more: object = {}): EngineObject {
  const ownerReferences = owners.map((uid) => ({ apiVersion: 'v1', kind: 'X', name: uid, uid }));
  return { ...engineObject({}, { name, uid: name, ownerReferences }), kind, ...more };
}

const CORE = { apiVersion: 'v1' };
const root = engineObject({ status: 'new', operationContext: flow() }, { uid: 'root' });

describe('the tree of owners', () => {
  const objects = [
    owned('Pod', 'ship-10', ['leg-1'], { ...CORE, status: { phase: 'Running' } }),
    owned('Pod', 'ship-2', ['leg-1'], { ...CORE, status: { phase: 'Pending' } }),
    owned('Secret', 'code', ['root'], { ...CORE, status: undefined }),
    owned('Leg', 'leg-1', ['root'], { status: { status: 'sailing' } }),
    owned('Leg', 'leg-2', ['root']),
    owned('Leg', 'foreign', ['somebody']),
  ];

  it('is drawn with branches, states and current tasks', () => {
    expect(treeLines(ownerTree(root, objects))).toEqual([
      'voyage/atlantic     new       sail 2/3: cross ocean',
      '├─ leg/leg-1        sailing',
      '│  ├─ pod/ship-2    Pending',
      '│  └─ pod/ship-10   Running',
      '├─ leg/leg-2        -',
      '└─ secret/code',
    ]);
  });

  it('is given to programs with the same nesting', () => {
    expect(treeReport(ownerTree(root, objects))).toMatchObject({
      kind: 'Voyage',
      state: 'new',
      flow: 'sail',
      task: 'cross ocean',
      children: [
        { name: 'leg-1', children: [{ name: 'ship-2' }, { name: 'ship-10' }] },
        { name: 'leg-2' },
        {},
      ],
    });
  });

  it('ends where owners form a circle, and shows what has two owners below both', () => {
    const circle = [owned('Leg', 'a', ['root', 'b']), owned('Leg', 'b', ['a'])];
    expect(treeLines(ownerTree(root, circle)).slice(1)).toEqual([
      expect.stringContaining('└─ leg/a'),
      expect.stringContaining('   └─ leg/b'),
    ]);
    const shared = [owned('Leg', 'a', ['root']), owned('Leg', 'b', ['root']), owned('Leg', 'c', ['a', 'b'])];
    expect(treeLines(ownerTree(root, shared)).filter((line) => line.includes('leg/c'))).toHaveLength(2);
  });

  it.each([
    ['Pod', CORE, { phase: 'Running' }, 'Running'],
    [
      'Pod',
      CORE,
      { phase: 'Pending', containerStatuses: [{ state: { waiting: { reason: 'ImagePullBackOff' } } }] },
      'ImagePullBackOff',
    ],
    ['PersistentVolumeClaim', CORE, { phase: 'Bound' }, 'Bound'],
    ['Job', { apiVersion: 'batch/v1' }, { active: 1 }, 'Running'],
    ['Job', { apiVersion: 'batch/v1' }, { conditions: [{ type: 'Failed', status: 'True' }] }, 'Failed'],
    ['Job', { apiVersion: 'batch/v1' }, undefined, 'Pending'],
    ['ConfigMap', CORE, undefined, ''],
  ])('%s %j %j is %s', (kind, version, status, state) => {
    expect(objectState(owned(kind, 'x', [], { ...version, status }))).toBe(state);
  });
});
