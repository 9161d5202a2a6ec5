/** Who the operator is and what it may do: its ServiceAccount, roles and bindings, and the roles of its users. */
import type * as k8s from '@kubernetes/client-node';
import type { Json, KubeObject } from '../../kube/resource-type.ts';
import {
  editorRole,
  namespacedOperatorRoles,
  operatorRole,
  type RbacRule,
  type Role,
  viewerRole,
} from '../../kube/schema/rbac.ts';
import type { System } from '../../resource-managers/kind.ts';
import { baseRules, ownNamespaceRules, systemRules } from './base-rules.ts';

export interface AccessOptions {
  readonly name: string;
  readonly namespace: string;
  readonly systems: readonly System[];
  /** Empty: all of them. */
  readonly namespaces: readonly string[];
  readonly webhooks: boolean;
}

type ServiceAccount = Json<k8s.V1ServiceAccount>;
type Binding = Json<k8s.V1RoleBinding>;

const RBAC_GROUP = 'rbac.authorization.k8s.io';

export function serviceAccount({ name, namespace }: AccessOptions): ServiceAccount {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, namespace },
    // The Deployment asks for the token; nobody else who runs under this account gets it unasked.
    automountServiceAccountToken: false,
  };
}

/** The operator's roles, each with its binding. */
export function operatorAccess(options: AccessOptions): KubeObject[] {
  const { name, namespace, namespaces, systems } = options;
  const rules = [...baseRules(options), ...systemRules(systems)];
  const roles = [...rolesFor(rules, { name, namespaces }), ownRole(options)];
  return roles.flatMap((role) => [role, bindingOf(role, { name, namespace })]);
}

/** Parts of the cluster's own `admin`, `edit` and `view`. */
export function userRoles(systems: readonly System[]): Role[] {
  return systems.flatMap(({ name, kinds }) => {
    const schemas = kinds.map(({ schema }) => schema);
    return [editorRole(name, schemas), viewerRole(name, schemas)];
  });
}

function rolesFor(
  rules: readonly RbacRule[],
  { name, namespaces }: { name: string; namespaces: readonly string[] },
): Role[] {
  if (namespaces.length === 0) return [operatorRole({ name, rules })];
  const { clusterRole, roles } = namespacedOperatorRoles({ name, namespaces, rules });
  return [...(clusterRole ? [clusterRole] : []), ...roles];
}

function ownRole(options: AccessOptions): Role {
  const { roles } = namespacedOperatorRoles({
    // The operator may also serve the namespace that it runs in, and then has two roles there.
    name: `${options.name}-own`,
    namespaces: [options.namespace],
    rules: ownNamespaceRules(options),
  });
  const [role] = roles;
  if (!role) throw new Error('a namespace has its role');
  return role;
}

function bindingOf(role: Role, account: { name: string; namespace: string }): Binding {
  const name = role.metadata?.name ?? '';
  const namespace = role.metadata?.namespace;
  return {
    apiVersion: `${RBAC_GROUP}/v1`,
    kind: `${role.kind}Binding`,
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    roleRef: { apiGroup: RBAC_GROUP, kind: role.kind ?? '', name },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  };
}
