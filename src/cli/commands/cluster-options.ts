/** Options of the commands that look at or steer objects. */
import { type Command, Option } from 'commander';

export const OBJECT_ARGUMENT = [
  '<kind/name...>',
  'the object, as kind/name or kind name; the kind in any form that kubectl takes',
] as const;

export const SELECTION_ARGUMENT = [
  '[kind[/name]...]',
  'a kind, or one object of it; in any form that kubectl takes (default: every kind with task flows)',
] as const;

export function addClusterOptions(command: Command): Command {
  return command
    .option('-n, --namespace <name>', 'namespace (default: that of the context)')
    .option('--kubeconfig <file>', 'how to reach the cluster (default: KUBECONFIG, then ~/.kube/config)')
    .option('--context <name>', 'context of the kubeconfig');
}

export function outputOption(formats: readonly string[]): Option {
  return new Option('-o, --output <format>', 'how to print it').choices(formats);
}
