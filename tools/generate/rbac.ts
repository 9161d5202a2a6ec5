/** config/rbac/*.yaml: what the operator may do, and what its users may. */
import { dump } from 'js-yaml';
import { BASE_RULES, OWN_NAMESPACE_RULES, systemRules } from '../../src/cli/install/base-rules.ts';
import { DEFAULT_NAMESPACE, OPERATOR } from '../../src/cli/install/names.ts';
import {
  editorRole,
  namespacedOperatorRoles,
  operatorRole,
  type Role,
  viewerRole,
} from '../../src/kube/schema/rbac.ts';
import type { System } from '../../src/resource-managers/kind.ts';
import { SYSTEMS } from '../../src/resource-managers/systems.ts';

export async function rbac(systems: readonly System[] = SYSTEMS): Promise<Readonly<Record<string, string>>> {
  const own = namespacedOperatorRoles({
    name: `${OPERATOR}-own`,
    namespaces: [DEFAULT_NAMESPACE],
    rules: OWN_NAMESPACE_RULES,
  });
  const roles: readonly (readonly [file: string, role: Role])[] = [
    ['operator', operatorRole({ name: OPERATOR, rules: [...BASE_RULES, ...systemRules(systems)] })],
    ...own.roles.map((role) => ['operator-own-namespace', role] as const),
    ...systems.flatMap(({ name, kinds }) => {
      const schemas = kinds.map(({ schema }) => schema);
      return [
        [`${name}-editor`, editorRole(name, schemas)] as const,
        [`${name}-viewer`, viewerRole(name, schemas)] as const,
      ];
    }),
  ];
  return Object.fromEntries(
    roles.map(([file, role]) => [`config/rbac/${file}.yaml`, dump(role, { lineWidth: 110, noRefs: true })]),
  );
}
