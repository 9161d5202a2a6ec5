/** `taskflow version`. */
import type { Command } from 'commander';
import { KUBERNETES_VERSION } from '../../local-cluster/binaries/versions.ts';
import { version } from '../../version.ts';
import { print } from '../terminal.ts';

export function addVersionCommand(program: Command): void {
  program
    .command('version')
    .summary('print versions')
    .description('Print the version of taskflow and of the Kubernetes it runs locally.')
    .option('--json', 'as JSON')
    .action((options: { json?: boolean }) => {
      const facts = { taskflow: version, kubernetes: KUBERNETES_VERSION, node: process.version };
      if (options.json) return print(JSON.stringify(facts));
      print(`taskflow ${facts.taskflow} (local Kubernetes ${facts.kubernetes}, Node ${facts.node})`);
    });
}
