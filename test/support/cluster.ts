/** A test file's way into the shared control plane: an admin client, kubectl, namespaces of its own. */
import { execFile, type ExecFileException } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { afterAll, inject } from 'vitest';
import { awaitObject } from '../../src/kube/await-object.ts';
import { namespaces, serviceAccounts } from '../../src/kube/builtin-resources.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { openConnection } from '../../src/kube/connection.ts';
import { NotFound } from '../../src/kube/errors.ts';

export interface TestCluster {
  readonly admin: KubeClient;
  readonly kubeconfig: string;
  /** A namespace that is ready for Pods; deleted after the file. */
  namespace(prefix?: string): Promise<string>;
  kubectl(...args: string[]): Promise<KubectlResult>;
}

export interface KubectlResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Call it at the top level of a test file. */
export function useCluster(): TestCluster {
  const cluster = inject('cluster');
  const connection = openConnection({
    server: cluster.server,
    ca: cluster.ca,
    clientCertificate: cluster.admin,
  });
  const admin = new KubeClient(connection);
  const made: string[] = [];
  afterAll(async () => {
    // Not waited for: the control plane goes on deleting while the next file runs.
    const deletions = await Promise.allSettled(made.map((name) => admin.delete(namespaces, { name })));
    for (const { reason } of deletions.filter((result) => result.status === 'rejected'))
      if (!(reason instanceof NotFound)) throw reason;
    await connection.close();
  });
  return {
    admin,
    kubeconfig: cluster.kubeconfig,
    async namespace(prefix = 'test') {
      const name = `${prefix}-${randomBytes(4).toString('hex')}`;
      await admin.create(namespaces, { metadata: { name } });
      made.push(name);
      await awaitObject(admin, serviceAccounts, { namespace: name, name: 'default' }, () => true, {
        timeoutMs: 10_000,
        until: 'to be made',
      });
      return name;
    },
    kubectl: (...args) => runKubectl(cluster.kubectl, cluster.kubeconfig, args),
  };
}

/** kubectl as a user runs it; a failure is a result, not an exception. */
export function runKubectl(
  program: string,
  kubeconfig: string,
  args: readonly string[],
): Promise<KubectlResult> {
  return new Promise((resolve) => {
    const env = { ...process.env, KUBECONFIG: kubeconfig };
    execFile(
      program,
      args,
      { env, maxBuffer: 64 * 1024 * 1024 },
      (error: ExecFileException | null, stdout, stderr) => {
        const code = error?.code;
        resolve({ exitCode: error === null ? 0 : typeof code === 'number' ? code : 1, stdout, stderr });
      },
    );
  });
}
