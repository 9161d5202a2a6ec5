import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { gadgets } from '../../../test/fixtures/gadget.ts';
import { loadConfig } from '../../runtime/config/load.ts';
import { configSchema } from '../../runtime/config/schema.ts';
import type { KubeObject } from '../../kube/resource-type.ts';
import type { Role } from '../../kube/schema/rbac.ts';
import { CONFIGURATION_NAME } from '../operator/webhooks.ts';
import { BASE_RULES, OWN_NAMESPACE_RULES } from './base-rules.ts';
import { chooseSystems } from '../choose-systems.ts';
import { crdManifests, manifests } from './manifests.ts';
import { OPERATOR, webhookName } from './names.ts';
import { typeOf } from './object-types.ts';

const { systems } = gadgets('unit');

function named(objects: readonly KubeObject[], kind: string, name?: string): KubeObject[] {
  return objects.filter(
    (object) => object.kind === kind && (name === undefined || object.metadata?.name === name),
  );
}

function rulesOf(objects: readonly KubeObject[], kind: string, name: string): string {
  return JSON.stringify((named(objects, kind, name) as Role[]).map(({ rules }) => rules));
}

function settingsOf(objects: readonly KubeObject[]): Record<string, unknown> {
  const [map] = named(objects, 'ConfigMap') as (KubeObject & { data: Record<string, string> })[];
  return load(map?.data['taskflow-operator.yaml'] ?? '') as Record<string, unknown>;
}

function flat(value: object, prefix = ''): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]: [string, unknown]) =>
      typeof inner === 'object' && inner !== null && !Array.isArray(inner)
        ? Object.entries(flat(inner, `${prefix}${key}.`))
        : [[`${prefix}${key}`, inner]],
    ),
  );
}

describe('the manifests', () => {
  it('come in an order in which each finds what it needs', () => {
    const kinds = manifests({ systems }).map(({ kind = '' }) => kind);
    const first = (kind: string): number => kinds.indexOf(kind);
    expect(first('CustomResourceDefinition')).toBe(0);
    expect(first('Namespace')).toBe(kinds.lastIndexOf('CustomResourceDefinition') + 1);
    expect(first('ServiceAccount')).toBe(first('Namespace') + 1);
    expect(kinds.at(-1)).toBe('Deployment');
  });

  it('are all of kinds that the installation knows, each once, and carry its name', () => {
    const objects = manifests({ systems, namespaces: ['a', 'b'] });
    const keys = objects.map((object) =>
      JSON.stringify([typeOf(object).plural, object.metadata?.namespace, object.metadata?.name]),
    );
    expect(new Set(keys).size).toBe(objects.length);
    for (const { metadata } of objects)
      expect(metadata?.labels).toMatchObject({
        'app.kubernetes.io/part-of': OPERATOR,
        'app.kubernetes.io/instance': OPERATOR,
      });
  });

  it('give the operator settings that it accepts', () => {
    const settings = settingsOf(manifests({ systems, namespace: 'ops', namespaces: ['a'] }));
    const config = loadConfig({ env: {}, defaultFiles: [], flags: flat(settings) });
    expect(config).toMatchObject({
      systems: ['shipping-unit', 'workshop-unit'],
      namespaces: ['a'],
      leaderElection: { enabled: true, name: OPERATOR, namespace: 'ops' },
      webhooks: { enabled: true, service: webhookName(OPERATOR), secret: webhookName(OPERATOR) },
    });
  });

  it('use the names and ports that the operator has by default', () => {
    const config = configSchema.parse({});
    expect(CONFIGURATION_NAME).toBe(OPERATOR);
    expect(config.leaderElection.name).toBe(OPERATOR);
    expect(config.webhooks).toMatchObject({
      service: webhookName(OPERATOR),
      secret: webhookName(OPERATOR),
      address: ':9443',
    });
    expect([config.metrics.address, config.health.address]).toEqual([':8080', ':8081']);
    expect(config.shutdown.grace).toBeLessThan(30_000);
  });

  it('roll the Pods when the settings change, and only then', () => {
    const hash = (options: object): unknown => {
      const [object] = named(manifests({ systems, ...options }), 'Deployment');
      return (object as { spec?: { template: KubeObject } }).spec?.template.metadata?.annotations?.[
        'taskflow.dev/settings-hash'
      ];
    };
    expect(hash({})).toBe(hash({ image: 'other', replicas: 3 }));
    expect(hash({})).not.toBe(hash({ namespaces: ['a'] }));
  });

  it('have nothing of webhooks without webhooks', () => {
    const objects = manifests({ systems, webhooks: false });
    expect(JSON.stringify(objects).match(/webhook[^s]/gi)).toBeNull();
    expect(settingsOf(objects)['webhooks']).toEqual({ enabled: false });
  });

  it('in namespaced mode give rights in these namespaces, and on the cluster only for what has none', () => {
    const objects = manifests({ systems, namespaces: ['a', 'b'], namespace: 'ops' });
    const roles = named(objects, 'Role', OPERATOR);
    expect(roles.map(({ metadata }) => metadata?.namespace)).toEqual(['a', 'b']);
    expect(rulesOf(objects, 'Role', OPERATOR)).toMatch(/events.*jobs.*gadgets/s);
    const clusterWide = rulesOf(objects, 'ClusterRole', OPERATOR);
    expect(clusterWide).toMatch(/nodes.*depots/s);
    expect(clusterWide).not.toMatch(/gadgets|parcels|jobs|events|secrets/);
    expect(named(objects, 'RoleBinding').map(({ metadata }) => metadata?.namespace)).toEqual([
      'a',
      'b',
      'ops',
    ]);
  });

  it('have roles for the users of each system', () => {
    const names = named(manifests({ systems }), 'ClusterRole').map(({ metadata }) => metadata?.name);
    expect(names).toEqual([
      OPERATOR,
      'taskflow-workshop-unit-editor',
      'taskflow-workshop-unit-viewer',
      'taskflow-shipping-unit-editor',
      'taskflow-shipping-unit-viewer',
    ]);
  });

  it('of the kinds alone are only the kinds', () => {
    expect(crdManifests({ systems }).map(({ metadata }) => metadata?.name)).toEqual([
      'gadgets.unit.taskflow.dev',
      'depots.unit.taskflow.dev',
      'parcels.unit.taskflow.dev',
    ]);
  });
});

describe('the base rights', () => {
  it('name the objects wherever the request has a name', () => {
    const nameless = [...BASE_RULES, ...OWN_NAMESPACE_RULES].filter(({ resourceNames }) => !resourceNames);
    const verbs = nameless.flatMap((rule) =>
      rule.resources.map((resource) => `${rule.verbs.join()} ${resource}`),
    );
    expect(verbs).toEqual([
      'create,patch events',
      'create mutatingwebhookconfigurations',
      'create validatingwebhookconfigurations',
      'create leases',
      'create secrets',
    ]);
  });

  it('on Secrets and leases are in the operator’s own namespace only', () => {
    expect(JSON.stringify(BASE_RULES)).not.toMatch(/secrets|leases/);
    expect(rulesOf(manifests({ systems }), 'ClusterRole', OPERATOR)).not.toMatch(/secrets|leases/);
  });
});

describe('the choice of systems', () => {
  it('is all of them where none is named', () => {
    expect(chooseSystems(systems, [])).toBe(systems);
    expect(chooseSystems(systems, ['shipping-unit'])).toEqual([systems[1]]);
  });

  it('tells the nearest of an unknown name', () => {
    expect(() => chooseSystems(systems, ['shiping-unit'])).toThrow(
      'there is no system "shiping-unit"; did you mean shipping-unit? (there are: workshop-unit, shipping-unit)',
    );
    expect(() => chooseSystems([], ['iac'])).toThrow('comes with none');
  });
});
