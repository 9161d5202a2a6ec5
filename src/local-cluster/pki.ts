/**
 * The keys of a control plane, made once per directory and found again by the
 * next start: one authority for etcd and one per cluster, so that an admin of
 * one cluster is nobody in the other.
 */
import {
  type CertificateAuthority,
  createCertificateAuthority,
  createSigningKeys,
  type KeyPair,
  type LeafRequest,
  loadCertificateAuthority,
} from '../kube/certificates.ts';
import { type PlaneDirectory, readIfPresent, writePrivateFile } from './plane-directory.ts';

/** A key pair together with the files that the Kubernetes programs read it from. */
export interface KeyPairFiles extends KeyPair {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface EtcdPki {
  readonly caFile: string;
  readonly caPem: string;
  readonly server: KeyPairFiles;
  readonly client: KeyPairFiles;
}

export interface ClusterPki {
  readonly authority: CertificateAuthority;
  readonly caFile: string;
  readonly caKeyFile: string;
  readonly apiServer: KeyPairFiles;
  readonly kubeletClient: KeyPairFiles;
  readonly nodeServer: KeyPairFiles;
  readonly admin: KeyPairFiles;
  readonly controllerManager: KeyPairFiles;
  readonly virtualNode: KeyPairFiles;
  readonly serviceAccountKeyFile: string;
  readonly serviceAccountPublicKeyFile: string;
}

const LOOPBACK = ['127.0.0.1', 'localhost'];
/** First address of the Service range: what in-cluster clients call the API server. */
const API_SERVICE_HOSTS = [
  '10.96.0.1',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];

export async function etcdPki(directory: PlaneDirectory): Promise<EtcdPki> {
  const keys = await openKeyStore(directory, 'etcd');
  const [server, client] = await Promise.all([
    keys.leaf('server', { commonName: 'etcd', usages: ['server', 'client'], hosts: LOOPBACK }),
    keys.leaf('client', { commonName: 'kube-apiserver', usages: ['client'] }),
  ]);
  return { caFile: keys.caFile, caPem: keys.authority.certPem, server, client };
}

export async function clusterPki(
  directory: PlaneDirectory,
  index: number,
  virtualNodeUser: string,
): Promise<ClusterPki> {
  const owner = `cluster-${index}`;
  const keys = await openKeyStore(directory, owner);
  const client = (name: string, user: string, ...organizations: string[]): Promise<KeyPairFiles> =>
    keys.leaf(name, { commonName: user, organizations, usages: ['client'] });
  const [apiServer, nodeServer, kubeletClient, admin, controllerManager, virtualNode, serviceAccount] =
    await Promise.all([
      keys.leaf('apiserver', {
        commonName: 'kube-apiserver',
        usages: ['server'],
        hosts: [...LOOPBACK, ...API_SERVICE_HOSTS],
      }),
      keys.leaf('node-server', { commonName: 'virtual-node', usages: ['server'], hosts: LOOPBACK }),
      client('kubelet-client', 'kube-apiserver-kubelet-client', 'system:masters'),
      client('admin', 'admin', 'system:masters'),
      client('controller-manager', 'system:kube-controller-manager'),
      client('virtual-node', virtualNodeUser),
      signingKeys(directory, owner),
    ]);
  return {
    authority: keys.authority,
    caFile: keys.caFile,
    caKeyFile: keys.caKeyFile,
    apiServer,
    nodeServer,
    kubeletClient,
    admin,
    controllerManager,
    virtualNode,
    ...serviceAccount,
  };
}

interface KeyStore {
  readonly authority: CertificateAuthority;
  readonly caFile: string;
  readonly caKeyFile: string;
  leaf(name: string, request: LeafRequest): Promise<KeyPairFiles>;
}

async function openKeyStore(directory: PlaneDirectory, owner: string): Promise<KeyStore> {
  const pair = (name: string): { certFile: string; keyFile: string } => ({
    certFile: directory.pki(owner, `${name}.crt`),
    keyFile: directory.pki(owner, `${name}.key`),
  });
  const ca = pair('ca');
  const found = await readPair(ca);
  const authority = found
    ? await loadCertificateAuthority(found)
    : await createCertificateAuthority(`taskflow local ${owner}`);
  if (!found) await writePair(ca, authority);
  return {
    authority,
    caFile: ca.certFile,
    caKeyFile: ca.keyFile,
    async leaf(name, request) {
      const files = pair(name);
      const kept = await readPair(files);
      if (kept) return { ...files, ...kept };
      const made = await authority.issue(request);
      await writePair(files, made);
      return { ...files, ...made };
    },
  };
}

async function signingKeys(
  directory: PlaneDirectory,
  owner: string,
): Promise<Pick<ClusterPki, 'serviceAccountKeyFile' | 'serviceAccountPublicKeyFile'>> {
  const serviceAccountKeyFile = directory.pki(owner, 'service-account.key');
  const serviceAccountPublicKeyFile = directory.pki(owner, 'service-account.pub');
  if ((await readIfPresent(serviceAccountPublicKeyFile)) === undefined) {
    const keys = await createSigningKeys();
    await writePrivateFile(serviceAccountKeyFile, keys.privatePem);
    await writePrivateFile(serviceAccountPublicKeyFile, keys.publicPem);
  }
  return { serviceAccountKeyFile, serviceAccountPublicKeyFile };
}

interface PairFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

async function readPair({ certFile, keyFile }: PairFiles): Promise<KeyPair | undefined> {
  const [certPem, keyPem] = await Promise.all([readIfPresent(certFile), readIfPresent(keyFile)]);
  return certPem === undefined || keyPem === undefined ? undefined : { certPem, keyPem };
}

/** The certificate last: a pair without it counts as absent, so a crash in between does no harm. */
async function writePair({ certFile, keyFile }: PairFiles, pair: KeyPair): Promise<void> {
  await writePrivateFile(keyFile, pair.keyPem);
  await writePrivateFile(certFile, pair.certPem);
}
