/** The cluster that the user means, for as long as the work takes. */
import { KubeClient } from '../../kube/client.ts';
import { openConnection } from '../../kube/connection.ts';
import { type ClusterAccess, connectionFromKubeconfig } from '../../kube/kubeconfig.ts';

export interface ClusterChoice {
  readonly kubeconfig?: string;
  readonly context?: string;
}

export async function withCluster<Result>(
  { kubeconfig, context }: ClusterChoice,
  work: (client: KubeClient, access: ClusterAccess) => Promise<Result>,
): Promise<Result> {
  const cluster = await connectionFromKubeconfig({
    ...(kubeconfig !== undefined && { path: kubeconfig }),
    ...(context !== undefined && { context }),
  });
  await using connection = openConnection(cluster);
  return await work(
    new KubeClient(connection, cluster.impersonate ? { impersonate: cluster.impersonate } : {}),
    cluster,
  );
}
