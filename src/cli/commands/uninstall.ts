/** `taskflow uninstall`: the operator out of a cluster. */
import type { Command } from 'commander';

export interface UninstallFlags {
  readonly namespace?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly deleteCrds?: boolean;
  readonly force?: boolean;
}

export function addUninstallCommand(program: Command): void {
  program
    .command('uninstall')
    .summary('remove the operator from a cluster')
    .description(
      'Remove what `taskflow install` has put into a cluster, and wait until it is gone. The kinds and their ' +
        'objects stay. Refused while objects have finalizers that only the operator removes. Fine if nothing is ' +
        'installed.',
    )
    .option('--namespace <name>', 'where the operator ran, if it cannot be found (default: taskflow-system)')
    .option('--kubeconfig <file>', 'how to reach the cluster (default: KUBECONFIG, then ~/.kube/config)')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--delete-crds', 'delete the kinds as well, and with them ALL their objects')
    .option('--force', 'also while objects have finalizers; tells what is lost')
    .action(async (flags: UninstallFlags) =>
      (await import('../install/uninstall-action.ts')).uninstallAction(flags),
    );
}
