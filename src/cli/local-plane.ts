/** The local control plane in the foreground or the background; what `taskflow up` does. */
import { readClaim } from '../local-cluster/claim.ts';
import type { ControlPlane } from '../local-cluster/control-plane.ts';
import { PlaneDirectory } from '../local-cluster/plane-directory.ts';
import { startInBackground } from './background.ts';
import { type DataDir, dataDir } from './data-dir.ts';
import { tellParent } from './parent-channel.ts';
import { runSteps } from './progress.ts';
import { type StartedPlane, startSteps } from './start-steps.ts';
import { paint, print, printError, seconds } from './terminal.ts';

export interface UpOptions {
  readonly dataDir?: string;
  readonly clusters: number;
  readonly detach?: boolean;
  readonly audit?: boolean;
  /** Names separated by commas; all where absent. */
  readonly systems?: string;
  readonly plugin?: string;
  readonly operator: boolean;
}

export async function up(options: UpOptions): Promise<void> {
  const dir = dataDir(options.dataDir);
  await (options.detach ? detached(options, dir) : foreground(options, dir));
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
  await withOperator(options, result, stopAsked.signal);
  tellParent({ type: 'ready' });
  printWhereItIs(plane, 'Ctrl-C stops it.');
  await serveUntilAsked(plane, stopAsked.signal);
}

/** A plane whose operator does not start is of no use. */
async function withOperator(options: UpOptions, result: StartedPlane, signal: AbortSignal): Promise<void> {
  const { operatorSteps } = await import('./local-operator.ts');
  try {
    const names = { systems: splitNames(options.systems), plugins: splitNames(options.plugin) };
    await runSteps(await operatorSteps(result, { ...names, operator: options.operator, signal }));
  } catch (error) {
    await result.plane?.stop();
    throw error;
  }
}

function splitNames(text = ''): string[] {
  return text.split(',').filter((name) => name !== '');
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
      ...(options.systems === undefined ? [] : ['--systems', options.systems]),
      ...(options.plugin === undefined ? [] : ['--plugin', options.plugin]),
      ...(options.operator ? [] : ['--no-operator']),
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
