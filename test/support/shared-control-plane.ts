/** Starts the one control plane that all integration test files share. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startControlPlane } from '../../src/local-cluster/control-plane.ts';

export interface SharedCluster {
  readonly server: string;
  readonly ca: string;
  readonly kubeconfig: string;
  readonly admin: { readonly certPem: string; readonly keyPem: string };
  readonly kubectl: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    cluster: SharedCluster;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const plane = await startControlPlane({
    dir: await mkdtemp(join(tmpdir(), 'taskflow-test-')),
    durable: false,
    ephemeral: true,
  });
  const [cluster] = plane.clusters;
  project.provide('cluster', {
    server: cluster.server,
    ca: cluster.ca,
    kubeconfig: cluster.kubeconfig,
    admin: cluster.adminKeys,
    kubectl: plane.binaries.paths.kubectl,
  });
  return () => plane.stop();
}
