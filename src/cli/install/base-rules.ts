/**
 * What the operator itself may do, beside what its kinds need. Two sets: rights
 * that it has wherever it works, and those in its own namespace only.
 * Permissions by name are as tight as RBAC allows: a request that creates an
 * object has no name yet, and one that lists or watches must select by name.
 */
import { controllerRules, type RbacRule } from '../../kube/schema/rbac.ts';
import type { System } from '../../resource-managers/kind.ts';
import { certificateRules, configurationRules } from '../../webhooks/permissions.ts';
import { OPERATOR, webhookName } from './names.ts';

export interface BaseRulesOptions {
  /** Of the installation; default: the usual one. */
  readonly name?: string;
  /** Whether it serves webhooks; default: yes. */
  readonly webhooks?: boolean;
}

/** Wherever objects of its kinds are; events go beside the objects they tell of. */
export function baseRules({ name = OPERATOR, webhooks = true }: BaseRulesOptions = {}): readonly RbacRule[] {
  return [
    { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
    ...(webhooks ? configurationRules(name) : []),
  ];
}

/** In the namespace that the operator runs in: its lease, and the Secret with its certificate. */
export function ownNamespaceRules({
  name = OPERATOR,
  webhooks = true,
}: BaseRulesOptions = {}): readonly RbacRule[] {
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return [
    { ...leases, resourceNames: [name], verbs: ['get', 'list', 'watch', 'update'] },
    { ...leases, verbs: ['create'] },
    ...(webhooks ? certificateRules(webhookName(name)) : []),
  ];
}

/** What the kinds of these systems need. */
export function systemRules(systems: readonly System[]): readonly RbacRule[] {
  return systems.flatMap(({ kinds }) =>
    kinds.flatMap(({ schema, rbac }) => [...controllerRules(schema), ...rbac]),
  );
}

/** Everything but what is in its own namespace. */
export const BASE_RULES: readonly RbacRule[] = baseRules();
export const OWN_NAMESPACE_RULES: readonly RbacRule[] = ownNamespaceRules();
