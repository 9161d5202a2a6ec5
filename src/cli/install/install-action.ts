/** What `taskflow install` does with its flags, and what it prints. */
import { dump } from 'js-yaml';
import { SYSTEMS } from '../../resource-managers/systems.ts';
import { version } from '../../version.ts';
import type { InstallFlags } from '../commands/install.ts';
import { paint, print } from '../terminal.ts';
import { chooseSystems } from '../choose-systems.ts';
import { install, type Summary } from './install.ts';
import { type ManifestOptions, manifests } from './manifests.ts';
import { DEFAULT_NAMESPACE, OPERATOR } from './names.ts';
import { withCluster } from './with-cluster.ts';

export async function installAction(flags: InstallFlags): Promise<void> {
  const wanted = manifestOptions(flags);
  if (flags.output === 'yaml') return print(asYaml(wanted));
  const { dryRun = false, wait = false, forceConflicts = false } = flags;
  const summary = await withCluster(flags, (client) =>
    install(client, { ...wanted, dryRun, wait, forceConflicts }, print),
  );
  printSummary(summary, flags);
}

function manifestOptions(flags: InstallFlags): ManifestOptions {
  const { systems, namespaces, webhooks, namespace, image, replicas } = flags;
  return {
    systems: chooseSystems(SYSTEMS, systems),
    namespaces,
    webhooks,
    ...(namespace !== undefined && { namespace }),
    ...(image !== undefined && { image }),
    ...(replicas !== undefined && { replicas }),
  };
}

function asYaml(options: ManifestOptions): string {
  return manifests(options)
    .map((object) => dump(object, { noRefs: true, lineWidth: 110 }))
    .join('---\n')
    .trimEnd();
}

function printSummary(summary: Summary, { dryRun, wait, namespace = DEFAULT_NAMESPACE }: InstallFlags): void {
  const counts = Object.entries(summary)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${count} ${what}`);
  print();
  if (dryRun) return print(`Dry run, nothing was changed. It would be: ${counts.join(', ')}.`);
  print(`${paint('green', '●')} ${OPERATOR} ${version} is installed in ${namespace}: ${counts.join(', ')}.`);
  if (!wait) print(`  kubectl -n ${namespace} rollout status deployment/${OPERATOR}`);
}
