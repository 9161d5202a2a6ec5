/** What an installation puts into a cluster, as far as an operator outside of it needs: CRDs, account, roles. */
import type * as k8s from '@kubernetes/client-node';
import { baseRules, ownNamespaceRules, systemRules } from '../../src/cli/install/base-rules.ts';
import { awaitObject } from '../../src/kube/await-object.ts';
import {
  clusterRoleBindings,
  clusterRoles,
  namespaces,
  serviceAccounts,
} from '../../src/kube/builtin-resources.ts';
import { customResourceDefinition, customResourceDefinitions } from '../../src/kube/schema/crd.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { mergeRules, type RbacRule } from '../../src/kube/schema/rbac.ts';
import { defineResource, type Json } from '../../src/kube/resource-type.ts';
import type { Cluster } from '../../src/local-cluster/cluster.ts';
import type { System } from '../../src/resource-managers/kind.ts';

export interface OperatorAccess {
  /** Of the operator's ServiceAccount. */
  readonly kubeconfig: string;
  readonly namespace: string;
}

export interface InstallOptions {
  /** Takes rights away, to show that they are needed. */
  readonly adjustRules?: (rules: readonly RbacRule[]) => readonly RbacRule[];
  readonly namespace?: string;
}

const NAME = 'taskflow-operator';
const RBAC = 'rbac.authorization.k8s.io';
const roles = defineResource<Json<k8s.V1Role>>(`${RBAC}/v1`, 'Role', 'roles', 'Namespaced');
const roleBindings = defineResource<Json<k8s.V1RoleBinding>>(
  `${RBAC}/v1`,
  'RoleBinding',
  'rolebindings',
  'Namespaced',
);

export async function installOperator(
  cluster: Cluster,
  systems: readonly System[],
  { adjustRules = (rules) => rules, namespace = 'taskflow-system' }: InstallOptions = {},
): Promise<OperatorAccess> {
  const { admin } = cluster;
  const options = { fieldManager: 'taskflow-test' };
  await admin.apply(namespaces, { metadata: { name: namespace } }, options);
  await admin.apply(serviceAccounts, { metadata: { name: NAME, namespace } }, options);
  const subjects = [{ kind: 'ServiceAccount', name: NAME, namespace }];
  const rulesOf = (rules: readonly RbacRule[]) => mergeRules(adjustRules(rules)) as Json<k8s.V1PolicyRule>[];
  const everywhere = `${NAME}-${namespace}`;
  await Promise.all([
    admin.apply(
      clusterRoles,
      { metadata: { name: everywhere }, rules: rulesOf([...baseRules(), ...systemRules(systems)]) },
      options,
    ),
    admin.apply(
      clusterRoleBindings,
      {
        metadata: { name: everywhere },
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: everywhere },
        subjects,
      },
      options,
    ),
    admin.apply(roles, { metadata: { name: NAME, namespace }, rules: rulesOf(ownNamespaceRules()) }, options),
    admin.apply(
      roleBindings,
      {
        metadata: { name: NAME, namespace },
        roleRef: { apiGroup: RBAC, kind: 'Role', name: NAME },
        subjects,
      },
      options,
    ),
    ...systems.flatMap(({ kinds }) => kinds.map(({ schema }) => installCrd(admin, schema))),
  ]);
  return { kubeconfig: await cluster.serviceAccountKubeconfig({ namespace, name: NAME }), namespace };
}

export async function installCrd(
  admin: KubeClient,
  schema: Parameters<typeof customResourceDefinition>[0],
): Promise<void> {
  const { metadata } = await admin.apply(customResourceDefinitions, customResourceDefinition(schema), {
    fieldManager: 'taskflow-test',
  });
  await awaitObject(
    admin,
    customResourceDefinitions,
    { name: metadata.name },
    ({ status }) =>
      (status?.conditions ?? []).some((it) => it.type === 'Established' && it.status === 'True'),
    { timeoutMs: 20_000, until: 'to be Established' },
  );
}
