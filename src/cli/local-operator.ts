/**
 * The operator beside the local control plane: installed as in any cluster,
 * but run as a process of this machine, under its own ServiceAccount, with
 * webhooks that the API server calls by URL.
 */
import { awaitReady } from '../local-cluster/child-watch.ts';
import type { Cluster } from '../local-cluster/cluster.ts';
import type { ControlPlane } from '../local-cluster/control-plane.ts';
import { freePorts } from '../local-cluster/ports.ts';
import type { System } from '../resource-managers/kind.ts';
import { SYSTEMS } from '../resource-managers/systems.ts';
import { chooseSystems } from './choose-systems.ts';
import { applyObject } from './install/apply-object.ts';
import { installCrds } from './install/install.ts';
import { accessManifests } from './install/manifests.ts';
import { DEFAULT_NAMESPACE, OPERATOR } from './install/names.ts';
import { loadPlugins, refuseDoubles } from './operator/plugins.ts';
import type { Step } from './progress.ts';
import type { StartedPlane } from './start-steps.ts';
import { UserError } from './user-error.ts';

export interface LocalOperatorOptions {
  /** Names of systems; all where empty. */
  readonly systems: readonly string[];
  readonly plugins: readonly string[];
  /** False: the kinds are installed, and nothing reconciles them. */
  readonly operator: boolean;
  readonly signal: AbortSignal;
}

const TOKEN_SECONDS = 365 * 24 * 3600;
const READY_TIMEOUT_MS = 60_000;

/** No steps where there is no kind to install. */
export async function operatorSteps(started: StartedPlane, options: LocalOperatorOptions): Promise<Step[]> {
  const systems = await systemsFor(options);
  const count = systems.flatMap((system) => system.kinds).length;
  if (count === 0) return [];
  const plane = (): ControlPlane => {
    if (!started.plane) throw new Error('there is no control plane to install into');
    return started.plane;
  };
  const install: Step = {
    title: `Install ${count} custom resources`,
    run: async (say) => {
      await installCrds(plane().clusters[0].admin, { systems, signal: options.signal }, say);
      return `${count} custom resources installed: ${systems.map(({ name }) => name).join(', ')}`;
    },
  };
  const run: Step = {
    title: 'Start the operator',
    run: async () => {
      await startOperator(plane(), systems, options);
      return `Operator runs as ServiceAccount ${DEFAULT_NAMESPACE}/${OPERATOR}`;
    },
  };
  return options.operator ? [install, run] : [install];
}

async function systemsFor({ systems, plugins }: LocalOperatorOptions): Promise<readonly System[]> {
  const loaded = await loadPlugins(plugins);
  if (loaded.failures.length > 0)
    throw new UserError(`plugins cannot be loaded:\n  ${loaded.failures.join('\n  ')}`);
  const chosen = [...chooseSystems(SYSTEMS, systems), ...loaded.systems];
  refuseDoubles(chosen);
  return chosen;
}

async function startOperator(
  plane: ControlPlane,
  systems: readonly System[],
  { plugins, signal, systems: names }: LocalOperatorOptions,
): Promise<void> {
  const [cluster] = plane.clusters;
  await grantAccess(cluster, systems);
  const account = { namespace: DEFAULT_NAMESPACE, name: OPERATOR };
  const kubeconfig = await cluster.serviceAccountKubeconfig(account, TOKEN_SECONDS);
  const [webhookPort = 0, healthPort = 0] = await freePorts(2);
  const settings = {
    'webhooks.address': `127.0.0.1:${webhookPort}`,
    'webhooks.url': `https://127.0.0.1:${webhookPort}`,
    'health.address': `127.0.0.1:${healthPort}`,
    'metrics.address': '127.0.0.1:0',
    // One process of one plane: there is nobody to elect, and no lease of a killed one to wait for.
    'leaderElection.enabled': 'false',
    'log.format': 'human',
    ...(names.length > 0 && { systems: names.join(',') }),
    ...(plugins.length > 0 && { 'engine.plugins': plugins.join(',') }),
  };
  const child = plane.spawn({
    name: 'operator',
    command: process.execPath,
    args: [
      process.argv[1] ?? '',
      'run',
      `--kubeconfig=${kubeconfig}`,
      `--manager-namespace=${DEFAULT_NAMESPACE}`,
      ...Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]),
    ],
  });
  await awaitReady(child, () => askReadiness(healthPort), { timeoutMs: READY_TIMEOUT_MS, signal });
}

async function grantAccess({ admin }: Cluster, systems: readonly System[]): Promise<void> {
  for (const object of accessManifests({ systems }))
    await applyObject(admin, object, { forceConflicts: true });
}

async function askReadiness(port: number): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(5_000) });
  if (!answer.ok) throw new Error(await answer.text());
}
