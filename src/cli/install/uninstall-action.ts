/** What `taskflow uninstall` does with its flags, and what it prints. */
import type { UninstallFlags } from '../commands/uninstall.ts';
import { paint, print } from '../terminal.ts';
import { OPERATOR } from './names.ts';
import { uninstall } from './uninstall.ts';
import { withCluster } from './with-cluster.ts';

export async function uninstallAction({ kubeconfig, context, ...options }: UninstallFlags): Promise<void> {
  const cluster = {
    ...(kubeconfig !== undefined && { kubeconfig }),
    ...(context !== undefined && { context }),
  };
  const deleted = await withCluster(cluster, (client) => uninstall(client, options, print));
  if (deleted === 0) return print(`nothing of ${OPERATOR} is installed here`);
  print(`\n${paint('green', '●')} ${OPERATOR} is uninstalled: ${deleted} objects deleted.`);
}
