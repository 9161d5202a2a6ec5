/** The Helm chart: sound, accepted by a real API server, and the same as `taskflow install`. */
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { loadAll } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ManifestOptions, manifests } from '../../src/cli/install/manifests.ts';
import { objectKey, type KubeObject } from '../../src/kube/resource-type.ts';
import { mergeRules, type Role } from '../../src/kube/schema/rbac.ts';
import { systemFiles } from '../../tools/generate/chart.ts';
import { helmProgram } from '../../tools/helm/helm-program.ts';
import { gadgets } from '../fixtures/gadget.ts';
import { useCluster } from '../support/cluster.ts';
import { type Finished, runCommand } from '../support/command.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Minutes, where Helm has to be built first. */
const BUILD_TIMEOUT_MS = 15 * 60_000;
const CHART = join(import.meta.dirname, '../../charts/taskflow-operator');

const cluster = useCluster();
const { systems } = gadgets('chart');
const [workshop, shipping] = systems;
let helm = '';

beforeAll(async () => {
  helm = await helmProgram();
}, BUILD_TIMEOUT_MS);

/** The chart as it would be if these were the systems of the release. */
async function chartWithGadgets(dir: string): Promise<string> {
  const chart = join(dir, 'charts/taskflow-operator');
  await cp(CHART, chart, { recursive: true });
  for (const [file, content] of Object.entries(systemFiles(systems))) {
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeFile(join(dir, file), content);
  }
  return chart;
}

async function template(
  chart: string,
  values: object = {},
  namespace = 'taskflow-system',
): Promise<Finished> {
  const args = ['template', 'any-release', chart, '--namespace', namespace, '--include-crds'];
  return runCommand(helm, [...args, '--set-json', JSON.stringify(values)]);
}

async function rendered(chart: string, values: object): Promise<Record<string, KubeObject>> {
  const { exitCode, stdout, stderr } = await template(chart, values);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return byName(loadAll(stdout).filter((object) => object != null));
}

/** Helm makes the namespace itself, and cannot join rules: compared are the rights that they give. */
function byName(objects: readonly KubeObject[]): Record<string, KubeObject> {
  const entries = objects
    .filter(({ kind }) => kind !== 'Namespace')
    .map((object) => {
      const rules = 'rules' in object && { rules: mergeRules((object as Role).rules) };
      return [`${object.kind} ${objectKey(object.metadata ?? {})}`, { ...object, ...rules }] as const;
    });
  expect(new Set(entries.map(([key]) => key)).size).toBe(entries.length);
  return Object.fromEntries(entries);
}

describe('the chart', () => {
  it('is without fault for helm lint --strict', async () => {
    await using dir = await temporaryDirectory();
    for (const chart of [CHART, await chartWithGadgets(dir.path)]) {
      const { exitCode, stdout } = await runCommand(helm, ['lint', '--strict', chart]);
      expect({ exitCode, stdout }).toEqual({
        exitCode: 0,
        stdout: expect.stringContaining('0 chart(s) failed'),
      });
    }
  });

  const cases: readonly (readonly [string, object, Omit<ManifestOptions, 'systems'>])[] = [
    ['by default', {}, {}],
    ['for some namespaces', { namespaces: ['a', 'b'] }, { namespaces: ['a', 'b'] }],
    ['without webhooks', { webhooks: { enabled: false } }, { webhooks: false }],
    [
      'without webhooks, for one namespace',
      { webhooks: { enabled: false }, namespaces: ['a'] },
      { webhooks: false, namespaces: ['a'] },
    ],
    [
      'with another image and more replicas',
      { image: { repository: 'mirror/operator', tag: '7' }, replicas: 3 },
      { image: 'mirror/operator:7', replicas: 3 },
    ],
  ];

  it.each(cases)('makes the same objects as taskflow install %s', async (_, values, options) => {
    await using dir = await temporaryDirectory();
    const chart = await chartWithGadgets(dir.path);
    expect(await rendered(chart, values)).toEqual(byName(manifests({ systems, ...options })));
  });

  it('makes the same objects as taskflow install of one system; the kinds are always all of them', async () => {
    await using dir = await temporaryDirectory();
    const isCrd = ([key]: [string, unknown]): boolean => key.startsWith('CustomResourceDefinition');
    const objects = Object.entries(
      await rendered(await chartWithGadgets(dir.path), { systems: [shipping.name] }),
    );
    const wanted = Object.entries(byName(manifests({ systems: [shipping] })));
    expect(Object.fromEntries(objects.filter((entry) => !isCrd(entry)))).toEqual(
      Object.fromEntries(wanted.filter((entry) => !isCrd(entry))),
    );
    expect(objects.filter(isCrd)).toHaveLength(3);
  });

  it.each([
    [{ systems: ['shop'] }, `there is no system "shop" (there are: ${shipping.name}, ${workshop.name})`],
    [{ replica: 3 }, "additional properties 'replica' not allowed"],
    [{ replicas: 0 }, '/replicas'],
  ])('refuses %j', async (values, reason) => {
    await using dir = await temporaryDirectory();
    const { exitCode, stderr } = await template(await chartWithGadgets(dir.path), values);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain(reason);
  });

  it('passes further settings on, but those that agree with the rights stay', async () => {
    const config = { log: { verbosity: 1 }, leaderElection: { name: 'mine', leaseDuration: '30s' } };
    const objects = await rendered(CHART, { config });
    const map = objects['ConfigMap taskflow-system/taskflow-operator'] as { data?: Record<string, string> };
    const [settings] = loadAll(map.data?.['taskflow-operator.yaml'] ?? '');
    expect(settings).toMatchObject({
      log: { verbosity: 1 },
      leaderElection: { name: 'taskflow-operator', leaseDuration: '30s' },
    });
  });

  it('is accepted by the API server, with everything set that can be', async () => {
    await using dir = await temporaryDirectory();
    const [namespace, served] = [await cluster.namespace('chart'), await cluster.namespace('served')];
    const everything = {
      namespaces: [served],
      image: { pullPolicy: 'Always' },
      imagePullSecrets: [{ name: 'registry' }],
      serviceAccount: { annotations: { 'example.com/role': 'operator' } },
      podAnnotations: { 'example.com/scrape': 'true' },
      podLabels: { 'example.com/team': 'platform' },
      priorityClassName: 'system-cluster-critical',
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
      podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: 1000 },
    };
    const chart = await chartWithGadgets(dir.path);
    for (const values of [{}, everything]) {
      const { stdout } = await template(chart, values, namespace);
      const file = join(dir.path, 'rendered.yaml');
      await writeFile(file, stdout);
      const how = ['--server-side', '--dry-run=server', '--force-conflicts', '--validate=strict'];
      const applied = await cluster.kubectl('apply', ...how, '-f', file);
      expect(applied).toMatchObject({ exitCode: 0, stderr: '' });
      expect(applied.stdout).toContain(
        'deployment.apps/taskflow-operator serverside-applied (server dry run)',
      );
    }
  });
});
