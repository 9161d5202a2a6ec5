/**
 * Roles from declared permissions. Pure: the same declarations always give the
 * same rules in the same order, so that a change of rights shows in review.
 */
import type { KindSchema } from './define-schema.ts';
import type { KubeObject } from '../resource-type.ts';

export interface RbacRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Only these objects. The request that creates an object has no name yet: it needs a rule without. */
  readonly resourceNames?: readonly string[];
  /** `Cluster`: objects without a namespace; needs a ClusterRole also where the operator serves few namespaces. */
  readonly scope?: 'Namespaced' | 'Cluster';
}

type PolicyRule = Omit<RbacRule, 'scope'>;

export interface Role extends KubeObject {
  rules: readonly PolicyRule[];
}

const API_VERSION = 'rbac.authorization.k8s.io/v1';
const AGGREGATE = 'rbac.authorization.k8s.io/aggregate-to';
const READ = ['get', 'list', 'watch'];
const EDIT = [...READ, 'create', 'update', 'patch', 'delete', 'deletecollection'];

/** What a controller does with the objects of its own kind. It neither creates nor deletes them. */
export function controllerRules(kind: KindSchema): readonly RbacRule[] {
  const apiGroups = [kind.group];
  const scope = scopeOf(kind);
  return [
    { apiGroups, resources: [kind.plural], verbs: [...READ, 'update', 'patch'], scope },
    { apiGroups, resources: [`${kind.plural}/status`], verbs: ['get', 'update', 'patch'], scope },
    // Owner references that block deletion are allowed only to who may set finalizers.
    { apiGroups, resources: [`${kind.plural}/finalizers`], verbs: ['update'], scope },
  ];
}

export function operatorRole(options: { name: string; rules: readonly RbacRule[] }): Role {
  return clusterRole(options.name, options.rules);
}

/** The operator's rights where it serves only some namespaces: a Role in each, and what has no namespace. */
export function namespacedOperatorRoles(options: {
  name: string;
  namespaces: readonly string[];
  rules: readonly RbacRule[];
}): { clusterRole: Role | undefined; roles: readonly Role[] } {
  const clusterWide = options.rules.filter((rule) => rule.scope === 'Cluster');
  const namespaced = options.rules.filter((rule) => rule.scope !== 'Cluster');
  return {
    clusterRole: clusterWide.length > 0 ? clusterRole(options.name, clusterWide) : undefined,
    roles: options.namespaces.map((namespace) => namespaceRole(options.name, namespace, namespaced)),
  };
}

/** May change the objects of a system; part of the cluster's own `admin` and `edit`. */
export function editorRole(system: string, kinds: readonly KindSchema[]): Role {
  return clusterRole(`taskflow-${system}-editor`, userRules(kinds, EDIT), ['admin', 'edit']);
}

/** May look at the objects of a system; part of the cluster's own `view`. */
export function viewerRole(system: string, kinds: readonly KindSchema[]): Role {
  return clusterRole(`taskflow-${system}-viewer`, userRules(kinds, READ), ['view']);
}

/** The same for one namespace, where a ClusterRole is not to be had; kinds without a namespace are left out. */
export function namespacedEditorRole(system: string, kinds: readonly KindSchema[], namespace: string): Role {
  return namespaceRole(`taskflow-${system}-editor`, namespace, userRules(namespacedOnly(kinds), EDIT));
}

export function namespacedViewerRole(system: string, kinds: readonly KindSchema[], namespace: string): Role {
  return namespaceRole(`taskflow-${system}-viewer`, namespace, userRules(namespacedOnly(kinds), READ));
}

function namespacedOnly(kinds: readonly KindSchema[]): readonly KindSchema[] {
  return kinds.filter((kind) => kind.namespaced);
}

function userRules(kinds: readonly KindSchema[], verbs: readonly string[]): readonly RbacRule[] {
  return kinds.flatMap((kind) => [
    { apiGroups: [kind.group], resources: [kind.plural], verbs },
    { apiGroups: [kind.group], resources: [`${kind.plural}/status`], verbs: ['get'] },
    ...(kind.scale
      ? [
          {
            apiGroups: [kind.group],
            resources: [`${kind.plural}/scale`],
            verbs: verbs === EDIT ? ['get', 'update', 'patch'] : ['get'],
          },
        ]
      : []),
  ]);
}

function clusterRole(name: string, rules: readonly RbacRule[], aggregateTo: readonly string[] = []): Role {
  const labels = {
    'app.kubernetes.io/part-of': 'taskflow-operator',
    ...Object.fromEntries(aggregateTo.map((role) => [`${AGGREGATE}-${role}`, 'true'])),
  };
  return {
    apiVersion: API_VERSION,
    kind: 'ClusterRole',
    metadata: { name, labels },
    rules: mergeRules(rules),
  };
}

function namespaceRole(name: string, namespace: string, rules: readonly RbacRule[]): Role {
  const labels = { 'app.kubernetes.io/part-of': 'taskflow-operator' };
  return {
    apiVersion: API_VERSION,
    kind: 'Role',
    metadata: { name, namespace, labels },
    rules: mergeRules(rules),
  };
}

function scopeOf(kind: KindSchema): 'Namespaced' | 'Cluster' {
  return kind.namespaced ? 'Namespaced' : 'Cluster';
}

/** One verb on one resource, of one object or of all. */
interface Grant {
  readonly group: string;
  readonly resource: string;
  /** Undefined: every object. */
  readonly name: string | undefined;
  readonly verb: string;
}

/** The fewest rules that allow exactly the same. */
export function mergeRules(rules: readonly RbacRule[]): PolicyRule[] {
  const all = unique(rules.flatMap(grantsOf));
  const needed = all.filter((grant) => !all.some((other) => other !== grant && covers(other, grant)));
  // Each step joins what differs in one dimension only, so that no rule allows a combination nobody asked for.
  const perObject = join(
    needed,
    (grant) => [grant.group, grant.resource, grant.name],
    (grants) => ({ ...first(grants), verbs: sorted(grants.map((grant) => grant.verb)) }),
  );
  const perResource = join(
    perObject,
    (entry) => [entry.group, entry.resource, entry.verbs, entry.name === undefined],
    (entries) => ({ ...first(entries), names: sorted(entries.flatMap((entry) => entry.name ?? [])) }),
  );
  const perGroup = join(
    perResource,
    (entry) => [entry.group, entry.verbs, entry.names],
    (entries) => ({ ...first(entries), resources: sorted(entries.map((entry) => entry.resource)) }),
  );
  const merged = join(
    perGroup,
    (entry) => [entry.resources, entry.verbs, entry.names],
    (entries) => ({ ...first(entries), groups: sorted(entries.map((entry) => entry.group)) }),
  );
  return merged
    .map(({ groups, resources, names, verbs }) => ({
      apiGroups: groups,
      resources,
      ...(names.length > 0 && { resourceNames: names }),
      verbs,
    }))
    .toSorted((a, b) => compare(JSON.stringify(a), JSON.stringify(b)));
}

function grantsOf(rule: RbacRule): readonly Grant[] {
  const names = rule.resourceNames ?? [undefined];
  return rule.apiGroups.flatMap((group) =>
    rule.resources.flatMap((resource) =>
      names.flatMap((name) => rule.verbs.map((verb) => ({ group, resource, name, verb }))),
    ),
  );
}

function covers(wide: Grant, narrow: Grant): boolean {
  return (
    (wide.group === '*' || wide.group === narrow.group) &&
    (wide.resource === '*' || wide.resource === narrow.resource) &&
    (wide.name === undefined || wide.name === narrow.name) &&
    (wide.verb === '*' || wide.verb === narrow.verb)
  );
}

function unique(grants: readonly Grant[]): readonly Grant[] {
  const byText = new Map(
    grants.map((grant) => [JSON.stringify([grant.group, grant.resource, grant.name, grant.verb]), grant]),
  );
  return [...byText.values()];
}

function join<Item, Result>(
  items: readonly Item[],
  alike: (item: Item) => unknown,
  merge: (items: readonly Item[]) => Result,
): Result[] {
  return [...Map.groupBy(items, (item) => JSON.stringify(alike(item))).values()].map(merge);
}

function first<Item>([item]: readonly Item[]): Item {
  if (item === undefined) throw new Error('a group of rules is never empty');
  return item;
}

function sorted(texts: readonly string[]): string[] {
  return [...new Set(texts)].toSorted(compare);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
