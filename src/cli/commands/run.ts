/** `taskflow run`: the operator process. */
import { type Command, Option } from 'commander';

/** Flags that stand for one setting of the configuration each. */
const SETTINGS: readonly (readonly [flag: string, description: string, key: string])[] = [
  ['--systems <names>', 'systems to run, separated by commas (default: all)', 'systems'],
  ['--namespaces <names>', 'namespaces to watch, separated by commas (default: all)', 'namespaces'],
  [
    '--manager-namespace <name>',
    'namespace of the lease and the certificates (default: our own)',
    'leaderElection.namespace',
  ],
  [
    '--metrics-bind-address <address>',
    'where /metrics is served (default: :8080; 0 for none)',
    'metrics.address',
  ],
  [
    '--health-probe-bind-address <address>',
    'where /healthz and /readyz are served (default: :8081)',
    'health.address',
  ],
  ['--debug-address <address>', 'where /debug is served, loopback only (default: none)', 'debug.address'],
  ['--log-verbosity <n>', '0 info, 1 debug, 2 trace', 'log.verbosity'],
  ['--log-format <format>', 'json or human', 'log.format'],
  ['--plugin <modules>', 'modules with kinds of your own, separated by commas', 'engine.plugins'],
];

export interface RunOptions {
  readonly config?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  /** Settings from flags, by their key. */
  readonly settings: Readonly<Record<string, unknown>>;
}

export function addRunCommand(program: Command): void {
  const command = program
    .command('run')
    .summary('run the operator')
    .description(
      'Run the operator until SIGTERM. Settings come from a YAML file, the environment (TASKFLOW_…) and flags, ' +
        'each stronger than the one before; `--set key=value` sets any of them.\n' +
        'Exit code 0: asked to stop. 1: failed, or lost the lease. 2: wrong call or configuration.',
    )
    .option(
      '--config <file>',
      'configuration file (default: taskflow-operator.yaml here or in /etc/taskflow-operator)',
    )
    .option(
      '--kubeconfig <file>',
      'how to reach the cluster (default: KUBECONFIG, ~/.kube/config, or in-cluster)',
    )
    .option('--context <name>', 'context of the kubeconfig')
    .option('--no-leader-elect', 'lead without asking; for a single replica')
    .option('--no-webhooks', 'serve no admission webhooks')
    .option('--strict-plugins', 'fail if a plugin cannot be loaded')
    .option('--set <key=value>', 'any setting, e.g. log.verbosity=1; may be given often', collectPair, {});
  for (const [flag, description] of SETTINGS) command.addOption(new Option(flag, description));
  command.action(async (flags: Record<string, unknown>) => {
    process.exitCode = await (await import('../operator/run.ts')).run(toRunOptions(flags, command));
  });
}

function collectPair(text: string, pairs: Record<string, string>): Record<string, string> {
  const at = text.indexOf('=');
  return { ...pairs, [at < 0 ? text : text.slice(0, at)]: at < 0 ? '' : text.slice(at + 1) };
}

function toRunOptions(flags: Record<string, unknown>, command: Command): RunOptions {
  const given = SETTINGS.flatMap(([flag, , key]) => {
    const value = flags[new Option(flag).attributeName()];
    return value === undefined ? [] : [[key, value] as const];
  });
  const said = (name: string): boolean => command.getOptionValueSource(name) === 'cli';
  return {
    ...(typeof flags['config'] === 'string' && { config: flags['config'] }),
    ...(typeof flags['kubeconfig'] === 'string' && { kubeconfig: flags['kubeconfig'] }),
    ...(typeof flags['context'] === 'string' && { context: flags['context'] }),
    settings: {
      ...Object.fromEntries(given),
      ...(said('leaderElect') && { 'leaderElection.enabled': flags['leaderElect'] }),
      ...(said('webhooks') && { 'webhooks.enabled': flags['webhooks'] }),
      ...(said('strictPlugins') && { 'engine.strictPlugins': true }),
      ...(flags['set'] as Record<string, string>),
    },
  };
}
