/** `taskflow kubectl …`: kubectl of the same version, against the local control plane. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Command } from 'commander';
import { readClaim } from '../../local-cluster/claim.ts';
import { PlaneDirectory } from '../../local-cluster/plane-directory.ts';
import { DATA_DIR_OPTION, dataDir } from '../data-dir.ts';
import { UserError } from '../user-error.ts';

interface KubectlOptions {
  readonly dataDir?: string;
  readonly cluster: string;
}

export function addKubectlCommand(program: Command): void {
  program
    .command('kubectl')
    .summary('run kubectl against the local control plane')
    .description(
      'Run kubectl as the admin of the local control plane. Options of taskflow come first, then kubectl with its own:\n' +
        '  taskflow kubectl --cluster 2 get pods -A',
    )
    .option(...DATA_DIR_OPTION)
    .option('--cluster <n>', 'which cluster', '1')
    .argument('[args...]', 'what kubectl is told')
    .passThroughOptions()
    .allowUnknownOption()
    .action(async (args: string[], options: KubectlOptions) => {
      const directory = new PlaneDirectory(dataDir(options.dataDir).path);
      const claim = await readClaim(directory);
      if (!claim)
        throw new UserError(
          `no control plane is running in ${directory.path}: start one with \`taskflow up\``,
        );
      const kubeconfig = claim.clusters[Number(options.cluster) - 1]?.kubeconfig;
      if (kubeconfig === undefined)
        throw new UserError(`there is no cluster ${options.cluster}: ${claim.clusters.length} run here`);
      const { lookForBinaries } = await import('../../local-cluster/binaries/find-binaries.ts');
      const kubectl = (await lookForBinaries())?.paths.kubectl ?? 'kubectl';
      process.exitCode = await run(kubectl, args, { ...process.env, KUBECONFIG: kubeconfig });
    });
}

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env });
    process.on('SIGINT', leaveToKubectl);
    child.on('error', (error) => reject(new UserError(`kubectl could not be started: ${error.message}`)));
    child.on('exit', (code, signal) => {
      process.off('SIGINT', leaveToKubectl);
      resolve(signal ? 128 + constants.signals[signal] : (code ?? 0));
    });
  });
}

/** A Ctrl-C is for kubectl; we follow when it has ended. */
function leaveToKubectl(): void {}
