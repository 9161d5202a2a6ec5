/** `taskflow up`: the local control plane until Ctrl-C, or in the background. */
import { type Command, InvalidArgumentError } from 'commander';
import { MAX_CLUSTERS } from '../../local-cluster/limits.ts';
import { DATA_DIR_OPTION } from '../data-dir.ts';
import type { UpOptions } from '../local-plane.ts';

export function addUpCommand(program: Command): void {
  program
    .command('up')
    .summary('start a local Kubernetes control plane')
    .description(
      'Start a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager) on this machine, ' +
        'with a virtual node that runs Pods as processes, and the operator on it. It listens on loopback only.\n' +
        'Runs until Ctrl-C; with --detach in the background until `taskflow down`.',
    )
    .option(...DATA_DIR_OPTION)
    .option('--clusters <n>', `how many clusters, 1 to ${MAX_CLUSTERS}`, parseClusters, 1)
    .option('--systems <names>', 'systems to install and run, separated by commas (default: all)')
    .option('--plugin <modules>', 'modules with kinds of your own, separated by commas')
    .option('--no-operator', 'install the custom resources only; nothing reconciles them')
    .option('--detach', 'return when it is ready and leave it running')
    .option('--audit', 'write an audit log of every API request to <dir>/logs')
    .action(async (options: UpOptions) => (await import('../local-plane.ts')).up(options));
}

function parseClusters(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > MAX_CLUSTERS)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_CLUSTERS}.`);
  return count;
}
