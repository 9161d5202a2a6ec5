/** Kubeconfig files for one cluster and one user. */
import { dump } from 'js-yaml';
import type { ConnectionOptions } from '../kube/connection.ts';

export interface KubeconfigOptions {
  readonly cluster: string;
  readonly user: string;
  readonly namespace?: string;
  readonly connection: ConnectionOptions;
}

export function kubeconfigYaml({ cluster, user, namespace, connection }: KubeconfigOptions): string {
  const { server, ca, clientCertificate, token } = connection;
  const context = `${user}@${cluster}`;
  return dump({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: cluster, cluster: { server, 'certificate-authority-data': base64(ca) } }],
    users: [
      {
        name: user,
        user: {
          ...(clientCertificate && {
            'client-certificate-data': base64(clientCertificate.certPem),
            'client-key-data': base64(clientCertificate.keyPem),
          }),
          ...(token !== undefined && { token }),
        },
      },
    ],
    contexts: [{ name: context, context: { cluster, user, ...(namespace !== undefined && { namespace }) } }],
    'current-context': context,
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
