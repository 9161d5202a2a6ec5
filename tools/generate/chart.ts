/** The parts of the Helm chart that follow from the sources: its version, the kinds, and what their work needs. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import { systemRules } from '../../src/cli/install/base-rules.ts';
import { userRoles } from '../../src/cli/install/access.ts';
import { crdManifests } from '../../src/cli/install/manifests.ts';
import { OPERATOR } from '../../src/cli/install/names.ts';
import { mergeRules } from '../../src/kube/schema/rbac.ts';
import type { System } from '../../src/resource-managers/kind.ts';
import { SYSTEMS } from '../../src/resource-managers/systems.ts';

const CHART = `charts/${OPERATOR}`;
const NOTE = '# Made by `npm run generate`; do not edit.\n';

export async function chart(): Promise<Readonly<Record<string, string>>> {
  const text = await readFile(join(import.meta.dirname, '../../package.json'), 'utf8');
  const { version, description } = JSON.parse(text) as { version: string; description: string };
  return { [`${CHART}/Chart.yaml`]: chartFile(version, description), ...systemFiles(SYSTEMS) };
}

/** What follows from the systems: a file per kind, and the rights of each system. */
export function systemFiles(systems: readonly System[]): Record<string, string> {
  const crds = crdManifests({ systems }).map(
    (crd) => [`${CHART}/crds/${crd.metadata?.name}.yaml`, NOTE + yaml(crd)] as const,
  );
  return {
    ...Object.fromEntries(crds),
    [`${CHART}/files/systems.yaml`]: NOTE + yaml(rulesBySystem(systems)),
  };
}

function chartFile(version: string, description: string): string {
  return (
    NOTE +
    yaml({
      apiVersion: 'v2',
      name: OPERATOR,
      description,
      type: 'application',
      version,
      appVersion: version,
      // CEL in the kinds' schemas.
      kubeVersion: '>=1.29.0-0',
    })
  );
}

function rulesBySystem(systems: readonly System[]): Record<string, object> {
  return Object.fromEntries(
    systems.map((system) => {
      const rules = systemRules([system]);
      const [editor, viewer] = userRoles([system]);
      return [
        system.name,
        {
          namespacedRules: mergeRules(rules.filter(({ scope }) => scope !== 'Cluster')),
          clusterRules: mergeRules(rules.filter(({ scope }) => scope === 'Cluster')),
          editorRules: editor?.rules,
          viewerRules: viewer?.rules,
        },
      ];
    }),
  );
}

function yaml(content: object): string {
  return dump(content, { noRefs: true, lineWidth: 110 });
}
