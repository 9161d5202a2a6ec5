/** The built-in kinds that the project uses, in the order of their API groups. */
import type * as k8s from '@kubernetes/client-node';
import { defineResource, type Json } from './resource-type.ts';

export type ConfigMap = Json<k8s.V1ConfigMap>;
export type Event = Json<k8s.CoreV1Event>;
export type Namespace = Json<k8s.V1Namespace>;
export type Node = Json<k8s.V1Node>;
export type PersistentVolume = Json<k8s.V1PersistentVolume>;
export type PersistentVolumeClaim = Json<k8s.V1PersistentVolumeClaim>;
export type Pod = Json<k8s.V1Pod>;
export type Secret = Json<k8s.V1Secret>;
export type ServiceAccount = Json<k8s.V1ServiceAccount>;
export type Job = Json<k8s.V1Job>;
export type Lease = Json<k8s.V1Lease>;
export type ClusterRole = Json<k8s.V1ClusterRole>;
export type ClusterRoleBinding = Json<k8s.V1ClusterRoleBinding>;
export type StorageClass = Json<k8s.V1StorageClass>;

export const configMaps = defineResource<ConfigMap>('v1', 'ConfigMap', 'configmaps', 'Namespaced');
export const events = defineResource<Event>('v1', 'Event', 'events', 'Namespaced');
export const namespaces = defineResource<Namespace>('v1', 'Namespace', 'namespaces', 'Cluster');
export const nodes = defineResource<Node>('v1', 'Node', 'nodes', 'Cluster');
export const persistentVolumes = defineResource<PersistentVolume>(
  'v1',
  'PersistentVolume',
  'persistentvolumes',
  'Cluster',
);
export const persistentVolumeClaims = defineResource<PersistentVolumeClaim>(
  'v1',
  'PersistentVolumeClaim',
  'persistentvolumeclaims',
  'Namespaced',
);
export const pods = defineResource<Pod>('v1', 'Pod', 'pods', 'Namespaced');
export const secrets = defineResource<Secret>('v1', 'Secret', 'secrets', 'Namespaced');
export const serviceAccounts = defineResource<ServiceAccount>(
  'v1',
  'ServiceAccount',
  'serviceaccounts',
  'Namespaced',
);
export const jobs = defineResource<Job>('batch/v1', 'Job', 'jobs', 'Namespaced');
export const leases = defineResource<Lease>('coordination.k8s.io/v1', 'Lease', 'leases', 'Namespaced');
export const clusterRoles = defineResource<ClusterRole>(
  'rbac.authorization.k8s.io/v1',
  'ClusterRole',
  'clusterroles',
  'Cluster',
);
export const clusterRoleBindings = defineResource<ClusterRoleBinding>(
  'rbac.authorization.k8s.io/v1',
  'ClusterRoleBinding',
  'clusterrolebindings',
  'Cluster',
);
export const storageClasses = defineResource<StorageClass>(
  'storage.k8s.io/v1',
  'StorageClass',
  'storageclasses',
  'Cluster',
);
