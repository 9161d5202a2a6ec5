/** Who the virtual node is to the API server, and all that it may do there. */
import type { ClusterRole } from '../../kube/builtin-resources.ts';

export const VIRTUAL_NODE_USER = 'taskflow:virtual-node';
export const DEFAULT_NODE_NAME = 'virtual-node';

type Rules = NonNullable<ClusterRole['rules']>;

export function virtualNodeRules(nodeName: string): Rules {
  return [
    // The node itself and its heartbeat. Creation cannot be limited to a name.
    { apiGroups: [''], resources: ['nodes'], verbs: ['create'] },
    { apiGroups: [''], resources: ['nodes'], resourceNames: [nodeName], verbs: ['list', 'watch', 'patch'] },
    { apiGroups: [''], resources: ['nodes/status'], resourceNames: [nodeName], verbs: ['patch'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: [nodeName],
      verbs: ['patch'],
    },
    { apiGroups: [''], resources: ['namespaces'], verbs: ['create'] },
    // Pods, as a scheduler and as a kubelet.
    { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch', 'delete'] },
    { apiGroups: [''], resources: ['pods/binding'], verbs: ['create'] },
    { apiGroups: [''], resources: ['pods/status'], verbs: ['patch'] },
    // What Pods refer to.
    { apiGroups: [''], resources: ['configmaps', 'secrets'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] },
    // Volumes.
    { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['persistentvolumeclaims/status'], verbs: ['patch'] },
    {
      apiGroups: [''],
      resources: ['persistentvolumes'],
      verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
    },
    { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['list', 'watch', 'create'] },
  ];
}

/** Of a node with the default name. */
export const VIRTUAL_NODE_RULES: Rules = virtualNodeRules(DEFAULT_NODE_NAME);
