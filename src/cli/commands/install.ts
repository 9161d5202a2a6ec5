/** `taskflow install`: the operator into a cluster. */
import { type Command, InvalidArgumentError, Option } from 'commander';

export interface InstallFlags {
  readonly systems: readonly string[];
  readonly namespaces: readonly string[];
  readonly namespace?: string;
  readonly image?: string;
  readonly replicas?: number;
  readonly webhooks: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly dryRun?: boolean;
  readonly output?: 'yaml';
  readonly wait?: boolean;
  readonly forceConflicts?: boolean;
}

export function addInstallCommand(program: Command): void {
  program
    .command('install')
    .summary('install the operator in a cluster, or bring it up to date')
    .description(
      'Install the operator in a cluster: its kinds, its rights, and a Deployment with two replicas. Applied by the ' +
        'server; what is as it should be is not touched, and what an earlier installation needed and this one does ' +
        'not is deleted.',
    )
    .option('--systems <names>', 'which systems, separated by commas (default: all)', list, [])
    .option('--namespaces <names>', 'serve these namespaces only, with rights in no others', list, [])
    .option('--namespace <name>', 'where the operator runs (default: taskflow-system)')
    .option('--image <image>', 'image of the operator (default: taskflow-operator and this version)')
    .option('--replicas <n>', 'how many Pods; one leads, all serve webhooks (default: 2)', positive)
    .option('--no-webhooks', 'without admission webhooks')
    .option('--kubeconfig <file>', 'how to reach the cluster (default: KUBECONFIG, then ~/.kube/config)')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--dry-run', 'let the server check everything and tell what would change, without changing it')
    .addOption(new Option('-o, --output <format>', 'print the manifests and apply nothing').choices(['yaml']))
    .option('--wait', 'return when the operator runs')
    .option('--force-conflicts', 'take over fields that somebody else has set to other values')
    .action(async (flags: InstallFlags) =>
      (await import('../install/install-action.ts')).installAction(flags),
    );
}

function list(text: string): string[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.includes('')) throw new InvalidArgumentError('It must be names separated by commas.');
  return [...new Set(names)];
}

function positive(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1)
    throw new InvalidArgumentError('It must be a whole number from 1.');
  return count;
}
