/** An installation that Helm made is Helm's to change: two masters would undo each other's work. */
import type { KubeClient } from '../../kube/client.ts';
import { UserError } from '../user-error.ts';
import { selectorOf } from './names.ts';
import { deployments } from './object-types.ts';

export async function refuseHelmRelease(client: KubeClient, name: string): Promise<void> {
  const labelSelector = `${selectorOf(name)},app.kubernetes.io/managed-by=Helm`;
  const [found] = (await client.list(deployments, { labelSelector, limit: 1 })).items;
  if (!found) return;
  const release = found.metadata.annotations?.['meta.helm.sh/release-name'] ?? name;
  const { namespace } = found.metadata;
  throw new UserError(
    `Helm has installed the operator here (release ${release} in ${namespace}): ` +
      `use helm upgrade and helm uninstall -n ${namespace} ${release}`,
  );
}
