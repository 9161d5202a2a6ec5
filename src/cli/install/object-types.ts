/** The kinds of objects that an installation consists of, in the order in which they are applied. */
import type * as k8s from '@kubernetes/client-node';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  namespaces,
  serviceAccounts,
} from '../../kube/builtin-resources.ts';
import {
  apiVersionOf,
  defineResource,
  type Json,
  type KubeObject,
  type ResourceType,
} from '../../kube/resource-type.ts';
import { customResourceDefinitions } from '../../kube/schema/crd.ts';
import { mutatingConfigurations, validatingConfigurations } from '../../webhooks/configuration.ts';

export const deployments = defineResource<Json<k8s.V1Deployment>>(
  'apps/v1',
  'Deployment',
  'deployments',
  'Namespaced',
);

const RBAC = 'rbac.authorization.k8s.io/v1';

/** Between the namespace and what runs: all that goes again with an uninstallation or when it is no longer asked for. */
export const PART_TYPES: readonly ResourceType[] = [
  serviceAccounts,
  clusterRoles,
  clusterRoleBindings,
  defineResource(RBAC, 'Role', 'roles', 'Namespaced'),
  defineResource(RBAC, 'RoleBinding', 'rolebindings', 'Namespaced'),
  configMaps,
  defineResource('v1', 'Service', 'services', 'Namespaced'),
  mutatingConfigurations,
  validatingConfigurations,
  defineResource('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets', 'Namespaced'),
  deployments,
];

const TYPES: readonly ResourceType[] = [customResourceDefinitions, namespaces, ...PART_TYPES];

export function typeOf({ apiVersion, kind }: KubeObject): ResourceType {
  const found = TYPES.find((type) => type.kind === kind && apiVersionOf(type) === apiVersion);
  if (!found) throw new Error(`nothing of the kind ${apiVersion} ${kind} is installed`);
  return found;
}

/** `deployment.apps/taskflow-operator`, as kubectl names an object; with its namespace, since there may be several. */
export function describeObject(type: ResourceType, { metadata }: KubeObject): string {
  const group = type.group === '' ? '' : `.${type.group}`;
  const where = metadata?.namespace === undefined ? '' : ` -n ${metadata.namespace}`;
  return `${type.kind.toLowerCase()}${group}/${metadata?.name ?? ''}${where}`;
}
