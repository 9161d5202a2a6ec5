/** All objects of an installation, in the order in which they are applied. Pure. */
import type * as k8s from '@kubernetes/client-node';
import type { Json, KubeObject } from '../../kube/resource-type.ts';
import { type CustomResourceDefinition, customResourceDefinition } from '../../kube/schema/crd.ts';
import type { System } from '../../resource-managers/kind.ts';
import { version } from '../../version.ts';
import { operatorAccess, serviceAccount, userRoles } from './access.ts';
import { DEFAULT_IMAGE, DEFAULT_NAMESPACE, DEFAULT_REPLICAS, labelsOf, OPERATOR } from './names.ts';
import {
  configMap,
  deployment,
  disruptionBudget,
  webhookConfigurationShells,
  webhookService,
} from './workload.ts';

export interface ManifestOptions {
  readonly systems: readonly System[];
  /** Of the installation and most of its objects; another one only beside a second operator. */
  readonly name?: string;
  readonly namespace?: string;
  readonly image?: string;
  readonly replicas?: number;
  /** Namespaces that the operator serves; all if there are none. */
  readonly namespaces?: readonly string[];
  readonly webhooks?: boolean;
}

export function manifests(options: ManifestOptions): KubeObject[] {
  const all = withDefaults(options);
  return [
    ...crdManifests(options),
    ...accessManifests(options),
    ...[
      configMap(all),
      ...(all.webhooks ? [webhookService(all), ...webhookConfigurationShells(all)] : []),
      disruptionBudget(all),
      deployment(all),
    ].map((object: KubeObject) => labelled(object, all.name)),
  ];
}

/** What an operator outside of the cluster needs in it: its account and its rights. */
export function accessManifests(options: ManifestOptions): KubeObject[] {
  const all = withDefaults(options);
  const objects = [
    operatorNamespace(all.namespace),
    serviceAccount(all),
    ...operatorAccess(all),
    ...userRoles(all.systems),
  ];
  return objects.map((object: KubeObject) => labelled(object, all.name));
}

/** The kinds alone, as `taskflow up --no-operator` wants them. */
export function crdManifests({
  systems,
  name = OPERATOR,
}: Pick<ManifestOptions, 'systems' | 'name'>): CustomResourceDefinition[] {
  return systems.flatMap(({ kinds }) =>
    kinds.map(({ schema }) => labelled(customResourceDefinition(schema), name)),
  );
}

function withDefaults(options: ManifestOptions): Required<ManifestOptions> {
  return {
    name: OPERATOR,
    namespace: DEFAULT_NAMESPACE,
    image: DEFAULT_IMAGE,
    replicas: DEFAULT_REPLICAS,
    namespaces: [],
    webhooks: true,
    ...options,
  };
}

function operatorNamespace(name: string): Json<k8s.V1Namespace> {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
  };
}

/** CRDs outlive the version that brought them, so that they do not name it. */
function labelled<T extends KubeObject>(object: T, name: string): T {
  const labels = {
    ...labelsOf(name),
    ...(object.kind !== 'CustomResourceDefinition' && { 'app.kubernetes.io/version': version }),
    ...object.metadata?.labels,
  };
  return { ...object, metadata: { ...object.metadata, labels } };
}
