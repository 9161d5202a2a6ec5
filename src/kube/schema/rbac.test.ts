import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineSchema } from './define-schema.ts';
import {
  controllerRules,
  editorRole,
  mergeRules,
  namespacedEditorRole,
  namespacedOperatorRoles,
  namespacedViewerRole,
  operatorRole,
  type RbacRule,
  viewerRole,
} from './rbac.ts';

const empty = z.object({});
const common = { group: 'test.taskflow.dev', version: 'v1', spec: empty, status: empty };
const box = defineSchema({
  ...common,
  kind: 'Box',
  scale: { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' },
});
const rack = defineSchema({ ...common, kind: 'Rack', scope: 'Cluster' });

describe('mergeRules', () => {
  it.each<readonly [name: string, rules: readonly RbacRule[], merged: readonly RbacRule[]]>([
    [
      'joins verbs of one resource',
      [
        { apiGroups: [''], resources: ['pods'], verbs: ['watch', 'get'] },
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] },
      ],
      [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }],
    ],
    [
      'joins resources with the same verbs, but not across groups with different resources',
      [
        { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
        { apiGroups: [''], resources: ['nodes'], verbs: ['get'] },
        { apiGroups: ['batch'], resources: ['jobs'], verbs: ['get'] },
      ],
      [
        { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['get'] },
        { apiGroups: ['batch'], resources: ['jobs'], verbs: ['get'] },
      ],
    ],
    [
      'joins groups with the same resources',
      [
        { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
        { apiGroups: [''], resources: ['events'], verbs: ['create'] },
      ],
      [{ apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create'] }],
    ],
    [
      'drops what a wider rule allows already',
      [
        { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'update'], resourceNames: ['a'] },
        { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
        { apiGroups: ['apps'], resources: ['*'], verbs: ['get'] },
        { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] },
        { apiGroups: ['batch'], resources: ['jobs'], verbs: ['*'] },
        { apiGroups: ['batch'], resources: ['jobs'], verbs: ['list'] },
      ],
      [
        { apiGroups: [''], resources: ['secrets'], resourceNames: ['a'], verbs: ['update'] },
        { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
        { apiGroups: ['apps'], resources: ['*'], verbs: ['get'] },
        { apiGroups: ['batch'], resources: ['jobs'], verbs: ['*'] },
      ],
    ],
    [
      'joins names with the same verbs',
      [
        { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['b'] },
        { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['a'] },
      ],
      [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['a', 'b'], verbs: ['get'] }],
    ],
  ])('%s', (_, rules, merged) => {
    expect(mergeRules(rules)).toEqual(merged);
    expect(mergeRules(rules.toReversed())).toEqual(merged);
  });

  it('allows exactly what the rules allow, whatever they are', () => {
    let seed = 7;
    const random = (below: number): number => (seed = (seed * 48271) % 2147483647) % below;
    const some = (pool: readonly string[]): string[] => pool.filter(() => random(3) === 0);
    for (let round = 0; round < 300; round++) {
      const rules = Array.from({ length: 1 + random(6) }, (): RbacRule => {
        const names = random(3) === 0 ? some(['n1', 'n2', 'n3']) : [];
        return {
          apiGroups: some(['', 'a', 'b']),
          resources: some(['x', 'y', 'z', ...(random(9) === 0 ? ['*'] : [])]),
          verbs: some(['get', 'list', 'patch', ...(random(9) === 0 ? ['*'] : [])]),
          ...(names.length > 0 && { resourceNames: names }),
        };
      });
      expect(allowed(mergeRules(rules))).toEqual(allowed(rules));
    }
  });
});

/** Every request out of a small world that the rules allow, as the API server reads them. */
function allowed(rules: readonly RbacRule[]): string[] {
  const matches = (list: readonly string[], value: string): boolean =>
    list.includes('*') || list.includes(value);
  const requests = ['', 'a', 'b'].flatMap((group) =>
    ['x', 'y', 'z', 'other'].flatMap((resource) =>
      ['get', 'list', 'patch', 'delete'].flatMap((verb) =>
        ['n1', 'n2', 'n3', 'n4'].map((name) => ({ group, resource, verb, name })),
      ),
    ),
  );
  return requests
    .filter(({ group, resource, verb, name }) =>
      rules.some(
        (rule) =>
          matches(rule.apiGroups, group) &&
          matches(rule.resources, resource) &&
          matches(rule.verbs, verb) &&
          (rule.resourceNames?.includes(name) ?? true),
      ),
    )
    .map(({ group, resource, verb, name }) => `${verb} ${resource}.${group} ${name}`);
}

describe('roles', () => {
  const rules = [...controllerRules(box), ...controllerRules(rack)];

  it('the operator may change its kinds and their status, but neither create nor delete them', () => {
    expect(operatorRole({ name: 'taskflow-operator', rules })).toMatchObject({
      kind: 'ClusterRole',
      metadata: { name: 'taskflow-operator' },
      rules: [
        { resources: ['boxes', 'racks'], verbs: ['get', 'list', 'patch', 'update', 'watch'] },
        { resources: ['boxes/finalizers', 'racks/finalizers'], verbs: ['update'] },
        { resources: ['boxes/status', 'racks/status'], verbs: ['get', 'patch', 'update'] },
      ],
    });
  });

  it('in namespaced mode only what has no namespace is granted for the cluster', () => {
    const { clusterRole, roles } = namespacedOperatorRoles({ name: 'op', namespaces: ['a', 'b'], rules });
    expect(clusterRole?.rules.flatMap((rule) => rule.resources)).toEqual([
      'racks',
      'racks/finalizers',
      'racks/status',
    ]);
    expect(roles.map((role) => role.metadata?.namespace)).toEqual(['a', 'b']);
    expect(roles[0]?.rules.flatMap((rule) => rule.resources)).not.toContain('racks');
    expect(
      namespacedOperatorRoles({ name: 'op', namespaces: ['a'], rules: controllerRules(box) }).clusterRole,
    ).toBe(undefined);
  });

  it('editors and viewers become part of the cluster’s own roles', () => {
    const aggregate = (role: object): string[] =>
      Object.keys((role as { metadata: { labels: object } }).metadata.labels).filter((label) =>
        label.includes('aggregate'),
      );
    const editor = editorRole('storage', [box, rack]);
    const viewer = viewerRole('storage', [box, rack]);
    expect(aggregate(editor).map((label) => label.split('-').at(-1))).toEqual(['admin', 'edit']);
    expect(aggregate(viewer).map((label) => label.split('-').at(-1))).toEqual(['view']);
    expect(editor.rules).toContainEqual({
      apiGroups: ['test.taskflow.dev'],
      resources: ['boxes/scale'],
      verbs: ['get', 'patch', 'update'],
    });
    expect(viewer.rules).toEqual([
      { apiGroups: ['test.taskflow.dev'], resources: ['boxes', 'racks'], verbs: ['get', 'list', 'watch'] },
      {
        apiGroups: ['test.taskflow.dev'],
        resources: ['boxes/scale', 'boxes/status', 'racks/status'],
        verbs: ['get'],
      },
    ]);
  });

  it('roles of one namespace leave out what has none', () => {
    for (const role of [namespacedEditorRole, namespacedViewerRole].map((make) =>
      make('s', [box, rack], 'ns'),
    )) {
      expect(role).toMatchObject({ kind: 'Role', metadata: { namespace: 'ns' } });
      expect(role.rules.flatMap((rule) => rule.resources)).not.toContain('racks');
    }
  });
});
