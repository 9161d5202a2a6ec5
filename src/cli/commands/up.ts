/** `taskflow up`: the local control plane until Ctrl-C, or in the background. */
import { type Command, InvalidArgumentError } from 'commander';
import { type ControlPlane, MAX_CLUSTERS } from '../../local-cluster/control-plane.ts';
import { readClaim } from '../../local-cluster/claim.ts';
import { PlaneDirectory } from '../../local-cluster/plane-directory.ts';
import { DATA_DIR_OPTION, type DataDir, dataDir } from '../data-dir.ts';
import { startInBackground, tellParent } from '../background.ts';
import { runSteps } from '../progress.ts';
import { startSteps, type StartedPlane } from '../start-steps.ts';
import { paint, print, printError, seconds } from '../terminal.ts';

interface UpOptions {
  readonly dataDir?: string;
  readonly clusters: number;
  readonly detach?: boolean;
  readonly audit?: boolean;
}

export function addUpCommand(program: Command): void {
  program
    .command('up')
    .summary('start a local Kubernetes control plane')
    .description(
      'Start a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager) on this machine, ' +
        'with a virtual node that runs Pods as processes. It listens on loopback only.\n' +
        'Runs until Ctrl-C; with --detach in the background until `taskflow down`.',
    )
    .option(...DATA_DIR_OPTION)
    .option('--clusters <n>', `how many clusters, 1 to ${MAX_CLUSTERS}`, parseClusters, 1)
    .option('--detach', 'return when it is ready and leave it running')
    .option('--audit', 'write an audit log of every API request to <dir>/logs')
    .action(async (options: UpOptions) => {
      const dir = dataDir(options.dataDir);
      await (options.detach ? detached(options, dir) : foreground(options, dir));
    });
}

function parseClusters(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > MAX_CLUSTERS)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_CLUSTERS}.`);
  return count;
}

async function foreground(options: UpOptions, dir: DataDir): Promise<void> {
  const stopAsked = new AbortController();
  const onSignal = (): void => {
    if (stopAsked.signal.aborted) process.exit(130);
    stopAsked.abort(new Error('stopped before it was ready'));
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);

  const result: StartedPlane = {};
  await runSteps(
    startSteps(
      {
        dir: dir.path,
        clusters: options.clusters,
        durable: dir.kept,
        ephemeral: !dir.kept,
        audit: options.audit ?? false,
        signal: stopAsked.signal,
        report: (event) => event.type === 'warning' && printError(event.message),
      },
      result,
    ),
  );
  const { plane } = result;
  if (!plane) return;
  tellParent({ type: 'ready' });
  printWhereItIs(plane, 'Ctrl-C stops it.');
  await serveUntilAsked(plane, stopAsked.signal);
}

async function serveUntilAsked(plane: ControlPlane, stopAsked: AbortSignal): Promise<void> {
  const { promise: asked, resolve } = Promise.withResolvers<undefined>();
  if (stopAsked.aborted) resolve(undefined);
  stopAsked.addEventListener('abort', () => resolve(undefined), { once: true });
  const failure = await Promise.race([plane.failed, asked]);
  const began = performance.now();
  await plane.stop();
  if (failure) throw failure;
  printError(`stopped in ${seconds(performance.now() - began)}`);
}

async function detached(options: UpOptions, dir: DataDir): Promise<void> {
  const directory = new PlaneDirectory(dir.path);
  await startInBackground({
    args: [
      'up',
      ...(dir.kept ? ['--data-dir', dir.path] : []),
      '--clusters',
      String(options.clusters),
      ...(options.audit ? ['--audit'] : []),
    ],
    directory,
  });
  const claim = await readClaim(directory);
  if (!claim) throw new Error(`the control plane in ${dir.path} ended right after it was ready`);
  print(`${paint('green', '●')} running in the background (pid ${claim.pid}); \`taskflow down\` ends it`);
  printKubeconfigs(claim.clusters);
}

function printWhereItIs(plane: ControlPlane, howToEnd: string): void {
  print(`${paint('green', '●')} Kubernetes ${plane.version} is ready. ${howToEnd}`);
  printKubeconfigs(plane.clusters);
}

/** The line to copy comes last. */
function printKubeconfigs(clusters: readonly { server: string; kubeconfig: string }[]): void {
  clusters.forEach(({ server, kubeconfig }, at) => {
    print(`  cluster ${at + 1}   ${server}   ${kubeconfig}`);
  });
  print(`export KUBECONFIG=${clusters[0]?.kubeconfig}`);
}
