/** ServiceAccounts for tests that need a token: what goes through the fault proxy, what must not be allowed. */
import { clusterRoleBindings, serviceAccounts } from '../../src/kube/builtin-resources.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import type { KubeObject, ObjectRef } from '../../src/kube/resource-type.ts';

export async function createServiceAccount(
  admin: KubeClient,
  account: ObjectRef & { readonly namespace: string },
  { clusterRole }: { readonly clusterRole?: string } = {},
): Promise<void> {
  await admin.create(serviceAccounts, { metadata: { ...account } });
  if (clusterRole === undefined) return;
  await admin.create(clusterRoleBindings, {
    metadata: { name: `${account.namespace}-${account.name}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: clusterRole },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  });
}

/** Bound to an object, the token ends with that object. */
export async function requestToken(
  admin: KubeClient,
  account: ObjectRef,
  boundTo?: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
  },
): Promise<string> {
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 3600, ...(boundTo && { boundObjectRef: boundTo }) },
  };
  const answer = await admin.createSub<KubeObject, { status: { token: string } }>(serviceAccounts, request, {
    ref: account,
    subresource: 'token',
  });
  return answer.status.token;
}
