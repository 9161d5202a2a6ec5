/** The virtual node of one cluster: its rights, its keys, its start. */
import { clusterRoleBindings, clusterRoles } from '../kube/builtin-resources.ts';
import type { Cluster } from './cluster.ts';
import type { ProcessKeeper } from './processes/process-keeper.ts';
import { VIRTUAL_NODE_RULES, VIRTUAL_NODE_USER } from './virtual-node/permissions.ts';
import { startVirtualNode, type VirtualNode } from './virtual-node/virtual-node.ts';

export interface ClusterNodeOptions {
  readonly keeper: ProcessKeeper;
  readonly dir: string;
  readonly onError: (error: unknown) => void;
}

const ROLE = 'taskflow-virtual-node';
const FIELD_MANAGER = 'taskflow-local-cluster';

export async function startClusterNode(cluster: Cluster, options: ClusterNodeOptions): Promise<VirtualNode> {
  await grantRights(cluster);
  const { nodeServer, virtualNode } = cluster.nodeKeys;
  const { hostname, port } = new URL(cluster.server);
  return startVirtualNode({
    ...options,
    client: cluster.clientFor(cluster.connectionOf(virtualNode)),
    networkIndex: cluster.index,
    serving: { certPem: nodeServer.certPem, keyPem: nodeServer.keyPem, clientCaPem: cluster.ca },
    apiServer: { host: hostname, port: Number(port), caPem: cluster.ca },
  });
}

async function grantRights({ admin }: Cluster): Promise<void> {
  const options = { fieldManager: FIELD_MANAGER };
  await Promise.all([
    admin.apply(clusterRoles, { metadata: { name: ROLE }, rules: [...VIRTUAL_NODE_RULES] }, options),
    admin.apply(
      clusterRoleBindings,
      {
        metadata: { name: ROLE },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: ROLE },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: VIRTUAL_NODE_USER }],
      },
      options,
    ),
  ]);
}
