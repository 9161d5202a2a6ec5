/** What an installation puts into a cluster, as far as an operator outside of it needs: kinds, account, rights. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applyObject } from '../cli/install/apply-object.ts';
import { installCrds } from '../cli/install/install.ts';
import { accessManifests } from '../cli/install/manifests.ts';
import { loadPlugins, refuseDoubles } from '../cli/operator/plugins.ts';
import { serviceAccounts } from '../kube/builtin-resources.ts';
import type { KubeObject } from '../kube/resource-type.ts';
import type { Cluster } from '../local-cluster/cluster.ts';
import { kubeconfigYaml } from '../local-cluster/kubeconfig.ts';
import { writePrivateFile } from '../local-cluster/plane-directory.ts';

export type ClusterAccess = Pick<Cluster, 'server' | 'ca' | 'admin'>;

export interface OperatorAccess {
  readonly kubeconfig: string;
  /** The operator's own. */
  readonly namespace: string;
  /** Takes the kubeconfig away; the cluster is left to its end. */
  readonly remove: () => Promise<void>;
}

const TOKEN_SECONDS = 24 * 3600;

export async function grantOperatorAccess(
  { server, ca, admin }: ClusterAccess,
  plugins: readonly string[],
): Promise<OperatorAccess> {
  const { systems, failures } = await loadPlugins(plugins);
  if (failures.length > 0) throw new Error(`plugins cannot be loaded:\n  ${failures.join('\n  ')}`);
  refuseDoubles(systems);
  // Of its own, so that several operators in one cluster do not share rights.
  const name = `operator-${randomBytes(4).toString('hex')}`;
  await installCrds(admin, { systems, name, forceConflicts: true });
  for (const object of accessManifests({ systems, name, namespace: name, webhooks: false }))
    await applyObject(admin, object, { forceConflicts: true });
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: TOKEN_SECONDS },
  };
  const answer = await admin.createSub<KubeObject, { status: { token: string } }>(serviceAccounts, request, {
    ref: { namespace: name, name },
    subresource: 'token',
  });
  const dir = await mkdtemp(join(tmpdir(), 'taskflow-operator-'));
  const kubeconfig = join(dir, 'kubeconfig');
  const connection = { server, ca, token: answer.status.token };
  await writePrivateFile(kubeconfig, kubeconfigYaml({ cluster: 'test', user: name, connection }));
  return { kubeconfig, namespace: name, remove: () => rm(dir, { recursive: true, force: true }) };
}
