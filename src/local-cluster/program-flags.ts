/**
 * The command lines of etcd, kube-apiserver and kube-controller-manager. Pure:
 * everything a program is told is here, and why.
 */
import type { ClusterPki, EtcdPki } from './pki.ts';

export interface EtcdFlags {
  readonly dataDir: string;
  readonly clientPort: number;
  readonly peerPort: number;
  readonly pki: EtcdPki;
  readonly durable: boolean;
}

export function etcdFlags({ dataDir, clientPort, peerPort, pki, durable }: EtcdFlags): string[] {
  const client = `https://127.0.0.1:${clientPort}`;
  const peer = `https://127.0.0.1:${peerPort}`;
  return flags({
    name: 'local',
    'data-dir': dataDir,
    'listen-client-urls': client,
    'advertise-client-urls': client,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': `local=${peer}`,
    'cert-file': pki.server.certFile,
    'key-file': pki.server.keyFile,
    'trusted-ca-file': pki.caFile,
    'client-cert-auth': true,
    'peer-cert-file': pki.server.certFile,
    'peer-key-file': pki.server.keyFile,
    'peer-trusted-ca-file': pki.caFile,
    'peer-client-cert-auth': true,
    // A single member elects itself: no reason to wait a second for other votes.
    'heartbeat-interval': 20,
    'election-timeout': 100,
    'log-level': 'warn',
    ...(!durable && { 'unsafe-no-fsync': true }),
  });
}

export interface ApiServerFlags {
  readonly index: number;
  readonly port: number;
  readonly etcdPort: number;
  readonly etcd: EtcdPki;
  readonly pki: ClusterPki;
  readonly auditLog: { readonly policyFile: string; readonly logFile: string } | undefined;
}

export function apiServerFlags({ index, port, etcdPort, etcd, pki, auditLog }: ApiServerFlags): string[] {
  return flags({
    'bind-address': '127.0.0.1',
    'advertise-address': '127.0.0.1',
    'secure-port': port,
    // EndpointSlices refuse loopback addresses, so the `kubernetes` Service has no endpoint here.
    'endpoint-reconciler-type': 'none',
    'etcd-servers': `https://127.0.0.1:${etcdPort}`,
    'etcd-prefix': `/cluster-${index}`,
    'etcd-cafile': etcd.caFile,
    'etcd-certfile': etcd.client.certFile,
    'etcd-keyfile': etcd.client.keyFile,
    'client-ca-file': pki.caFile,
    'tls-cert-file': pki.apiServer.certFile,
    'tls-private-key-file': pki.apiServer.keyFile,
    'authorization-mode': 'Node,RBAC',
    'service-cluster-ip-range': '10.96.0.0/16',
    'service-account-issuer': 'https://kubernetes.default.svc.cluster.local',
    'service-account-key-file': pki.serviceAccountPublicKeyFile,
    'service-account-signing-key-file': pki.serviceAccountKeyFile,
    'kubelet-certificate-authority': pki.caFile,
    'kubelet-client-certificate': pki.kubeletClient.certFile,
    'kubelet-client-key': pki.kubeletClient.keyFile,
    'kubelet-preferred-address-types': 'InternalIP',
    'allow-privileged': true,
    profiling: false,
    ...(auditLog && {
      'audit-policy-file': auditLog.policyFile,
      'audit-log-path': auditLog.logFile,
    }),
  });
}

export interface ControllerManagerFlags {
  readonly port: number;
  readonly kubeconfig: string;
  readonly pki: ClusterPki;
}

/** Left off: what needs a cloud or a network, and what would write loopback addresses where they are refused. */
const CONTROLLERS_OFF = [
  'endpoints-controller',
  'endpointslice-controller',
  'endpointslice-mirroring-controller',
  'node-ipam-controller',
  'node-route-controller',
  'service-lb-controller',
  'cloud-node-lifecycle-controller',
  'certificatesigningrequest-signing-controller',
  'certificatesigningrequest-approving-controller',
  'certificatesigningrequest-cleaner-controller',
  'persistentvolume-attach-detach-controller',
  'horizontal-pod-autoscaler-controller',
];

export function controllerManagerFlags({ port, kubeconfig, pki }: ControllerManagerFlags): string[] {
  return flags({
    kubeconfig,
    'authentication-kubeconfig': kubeconfig,
    'authorization-kubeconfig': kubeconfig,
    'bind-address': '127.0.0.1',
    'secure-port': port,
    'tls-cert-file': pki.nodeServer.certFile,
    'tls-private-key-file': pki.nodeServer.keyFile,
    'client-ca-file': pki.caFile,
    'root-ca-file': pki.caFile,
    'service-account-private-key-file': pki.serviceAccountKeyFile,
    'use-service-account-credentials': true,
    // The only one of its kind: an election would cost seconds at every start.
    'leader-elect': false,
    // Its default of 20 a second makes the start of fifty controllers a matter of seconds.
    'kube-api-qps': 1000,
    'kube-api-burst': 2000,
    controllers: ['*', ...CONTROLLERS_OFF.map((name) => `-${name}`)].join(','),
    profiling: false,
  });
}

function flags(values: Record<string, string | number | boolean>): string[] {
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}
