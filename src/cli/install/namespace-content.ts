/** What else is in a namespace: deleting it would take all of that, too. */
import type { KubeClient } from '../../kube/client.ts';
import { ApiError } from '../../kube/errors.ts';
import { resourceName, type ResourceType, type Stored } from '../../kube/resource-type.ts';
import { OPERATOR } from './names.ts';

/** Kept by Kubernetes itself in every namespace, or only about other objects. */
const OF_THE_CLUSTER: readonly RegExp[] = [
  /^configmaps kube-root-ca\.crt$/,
  /^serviceaccounts default$/,
  /^(events|events\.events\.k8s\.io|endpoints|endpointslices\.discovery\.k8s\.io) /,
];
const ENOUGH_TO_SHOW = 5;

/** Some of the objects that are neither ours nor the cluster's own, as `configmaps mine`. */
export async function foreignContent(client: KubeClient, namespace: string): Promise<string[]> {
  const types = (await client.discover()).filter(
    ({ type, preferred, verbs }) =>
      type.namespaced && preferred && verbs.includes('list') && verbs.includes('delete'),
  );
  const found: string[] = [];
  for (const { type } of types) {
    if (found.length >= ENOUGH_TO_SHOW) break;
    found.push(...(await foreignOf(client, type, namespace)));
  }
  return found.slice(0, ENOUGH_TO_SHOW);
}

async function foreignOf(client: KubeClient, type: ResourceType, namespace: string): Promise<string[]> {
  try {
    const found: string[] = [];
    for await (const object of client.listAll(type, { namespace })) {
      const text = `${resourceName(type)} ${object.metadata.name}`;
      if (!isOurs(object) && !OF_THE_CLUSTER.some((pattern) => pattern.test(text))) found.push(text);
    }
    return found;
  } catch (error) {
    // An API whose server is away must not be taken for an empty one.
    if (error instanceof ApiError) return [`${resourceName(type)} (cannot be listed: HTTP ${error.code})`];
    throw error;
  }
}

/** Labelled by us, or made by a controller from something that is. */
function isOurs({ metadata }: Stored): boolean {
  return metadata.labels?.['app.kubernetes.io/part-of'] === OPERATOR;
}
