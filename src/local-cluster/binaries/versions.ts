/**
 * The pinned programs of the local control plane. Kubernetes and etcd move
 * together: the etcd release is the one that this Kubernetes release names.
 * `tools/kube-binaries/go.mod` pins the same versions for the build.
 */

export const KUBERNETES_VERSION = 'v1.36.3';
export const ETCD_VERSION = 'v3.6.8';

export type ProgramName = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kubectl';

export interface Program {
  readonly release: string;
  readonly versionArguments: readonly string[];
  readonly goPackage: string;
  /** Go names a program after its package, which for etcd says nothing. */
  readonly goOutput: string;
}

export const PROGRAMS: Readonly<Record<ProgramName, Program>> = {
  etcd: {
    release: ETCD_VERSION,
    versionArguments: ['--version'],
    goPackage: 'go.etcd.io/etcd/server/v3',
    goOutput: 'server',
  },
  'kube-apiserver': kubernetesProgram('kube-apiserver', ['--version']),
  'kube-controller-manager': kubernetesProgram('kube-controller-manager', ['--version']),
  kubectl: kubernetesProgram('kubectl', ['version', '--client']),
};

export const PROGRAM_NAMES: readonly ProgramName[] = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kubectl',
];

function kubernetesProgram(name: ProgramName, versionArguments: readonly string[]): Program {
  return {
    release: KUBERNETES_VERSION,
    versionArguments,
    goPackage: `k8s.io/kubernetes/cmd/${name}`,
    goOutput: name,
  };
}
