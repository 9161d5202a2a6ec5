/** Where a command looks: a cluster, what it offers, and the namespace. */
import type { KubeClient } from '../../kube/client.ts';
import type { ApiResource } from '../../kube/discovery.ts';
import type { ResourceType } from '../../kube/resource-type.ts';
import { type ClusterChoice, withCluster } from '../install/with-cluster.ts';

export interface ScopeFlags extends ClusterChoice {
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
}

export interface Scope {
  readonly client: KubeClient;
  readonly resources: readonly ApiResource[];
  /** Undefined: all of them. */
  readonly namespace: string | undefined;
}

export function withScope<Result>(
  flags: ScopeFlags,
  work: (scope: Scope) => Promise<Result>,
): Promise<Result> {
  return withCluster(flags, async (client, access) =>
    work({
      client,
      resources: await client.discover(),
      namespace: flags.allNamespaces ? undefined : (flags.namespace ?? access.namespace),
    }),
  );
}

/** Of objects of this type; cluster-wide ones have none. */
export function namespaceOf({ namespace }: Scope, type: ResourceType): string | undefined {
  return type.namespaced ? namespace : undefined;
}
