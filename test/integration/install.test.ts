import { randomBytes } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { install, type InstallOptions } from '../../src/cli/install/install.ts';
import { manifests } from '../../src/cli/install/manifests.ts';
import { DEFAULT_IMAGE, selectorOf } from '../../src/cli/install/names.ts';
import { deployments, typeOf } from '../../src/cli/install/object-types.ts';
import { uninstall } from '../../src/cli/install/uninstall.ts';
import { awaitObject } from '../../src/kube/await-object.ts';
import { clusterRoles, configMaps, namespaces, pods } from '../../src/kube/builtin-resources.ts';
import { objectKey, resourceName } from '../../src/kube/resource-type.ts';
import { customResourceDefinitions } from '../../src/kube/schema/crd.ts';
import { type Gadgets, gadgets } from '../fixtures/gadget.ts';
import { useCluster } from '../support/cluster.ts';

const cluster = useCluster();
const made: (Gadgets & { readonly name: string; readonly namespace: string })[] = [];

/** An installation of its own for a test: what has no namespace is named after it. */
function installation(options: Partial<InstallOptions> = {}) {
  const word = `i${randomBytes(3).toString('hex')}`;
  const kinds = gadgets(word);
  const wanted = { systems: kinds.systems, name: word, namespace: `${word}-system`, ...options };
  made.push({ ...kinds, name: word, namespace: wanted.namespace });
  const lines: string[] = [];
  return {
    ...kinds,
    ...wanted,
    lines,
    install: (more: Partial<InstallOptions> = {}) =>
      install(cluster.admin, { ...wanted, ...more }, (line) => lines.push(line)),
    uninstall: (more: Parameters<typeof uninstall>[1] = {}) =>
      uninstall(cluster.admin, { name: word, ...more }, (line) => lines.push(line)),
    /** The resourceVersion of everything that an installation with these options consists of. */
    async versions(more: Partial<InstallOptions> = {}): Promise<Record<string, string>> {
      const objects = manifests({ ...wanted, ...more });
      const found = await Promise.all(
        objects.map(async (object) => {
          const { name = '', namespace } = object.metadata ?? {};
          const stored = await cluster.admin.get(typeOf(object), { name, namespace });
          const { resourceVersion, generation } = stored.metadata;
          // Controllers write the status of these two at any time.
          const watched = ['Deployment', 'PodDisruptionBudget'].includes(object.kind ?? '');
          const version = watched ? `generation ${generation}` : resourceVersion;
          return [`${object.kind} ${objectKey({ name, namespace })}`, version] as const;
        }),
      );
      return Object.fromEntries(found);
    },
    async canI(verb: string, resource: string, ...more: string[]): Promise<boolean> {
      const account = `system:serviceaccount:${wanted.namespace}:${wanted.name}`;
      const { stdout } = await cluster.kubectl('auth', 'can-i', verb, resource, `--as=${account}`, ...more);
      return stdout.trim() === 'yes';
    },
  };
}

async function createGadget(
  { gadget }: ReturnType<typeof installation>,
  namespace: string,
  name: string,
  finalizers: string[] = [],
): Promise<void> {
  await cluster.admin.create(gadget, { metadata: { namespace, name, finalizers }, spec: { size: 2 } });
}

afterAll(async () => {
  // Not waited for: the control plane goes on deleting while the next file runs.
  const leftovers = made.flatMap(({ name, namespace, gadget, depot, parcel }) => [
    cluster.admin.delete(namespaces, { name: namespace }),
    ...[gadget, depot, parcel].map((kind) =>
      cluster.admin.delete(customResourceDefinitions, { name: resourceName(kind) }),
    ),
    cluster.admin.delete(clusterRoles, { name }),
  ]);
  await Promise.allSettled(leftovers);
});

describe('install', () => {
  it('creates everything, and the second time changes nothing', async () => {
    const mine = installation();
    const first = await mine.install();
    const objects = manifests(mine);
    expect(first).toEqual({ created: objects.length, configured: 0, unchanged: 0, deleted: 0 });
    expect(mine.lines).toContain(
      `customresourcedefinition.apiextensions.k8s.io/gadgets.${mine.name}.taskflow.dev created`,
    );
    expect(mine.lines).toContain(`deployment.apps/${mine.name} -n ${mine.namespace} created`);

    const before = await mine.versions();
    expect(await mine.install()).toEqual({
      created: 0,
      configured: 0,
      unchanged: objects.length,
      deleted: 0,
    });
    expect(await mine.versions()).toEqual(before);
  });

  it('serves the kinds, and users of the cluster’s own roles may use them', async () => {
    const mine = installation();
    await mine.install();
    const namespace = await cluster.namespace('install');
    const resource = `gadgets.${mine.name}.taskflow.dev`;
    for (const role of ['edit', 'view']) {
      await cluster.kubectl(
        'create',
        'rolebinding',
        role,
        `--clusterrole=${role}`,
        `--user=${role}or`,
        '-n',
        namespace,
      );
      // The aggregation controller of the control plane copies the rules.
      await awaitObject(
        cluster.admin,
        clusterRoles,
        { name: role },
        ({ rules }) =>
          rules?.some(({ apiGroups }) => apiGroups?.includes(`${mine.name}.taskflow.dev`)) ?? false,
        { timeoutMs: 20_000, until: 'to have the rules of the system' },
      );
    }
    const may = async (user: string, verb: string): Promise<string> =>
      (await cluster.kubectl('auth', 'can-i', verb, resource, `--as=${user}`, '-n', namespace)).stdout.trim();
    expect(await may('editor', 'create')).toBe('yes');
    expect(await may('viewor', 'list')).toBe('yes');
    expect(await may('viewor', 'create')).toBe('no');
  });

  it('gives the operator what it needs and no more', async () => {
    const mine = installation();
    await mine.install();
    const own = ['-n', mine.namespace];
    const webhook = 'validatingwebhookconfigurations';
    const allowed = await Promise.all([
      mine.canI('patch', `gadgets.${mine.name}.taskflow.dev`, '--subresource=status', '-A'),
      mine.canI('create', 'jobs', '-A'),
      mine.canI('create', 'events', '-A'),
      mine.canI('update', `leases/${mine.name}`, ...own),
      mine.canI('update', `secrets/${mine.name}-webhook`, ...own),
      mine.canI('patch', `${webhook}/${mine.name}`),
    ]);
    const refused = await Promise.all([
      mine.canI('create', `gadgets.${mine.name}.taskflow.dev`, '-A'),
      mine.canI('get', 'secrets', ...own),
      mine.canI('update', `secrets/other`, ...own),
      mine.canI('get', `secrets/${mine.name}-webhook`, '-n', 'default'),
      mine.canI('update', `leases/other`, ...own),
      mine.canI('patch', `${webhook}/other`),
      mine.canI('delete', `${webhook}/${mine.name}`),
    ]);
    expect({ allowed, refused }).toEqual({ allowed: Array(6).fill(true), refused: Array(7).fill(false) });
  });

  it('runs Pods that the Pod Security level `restricted` admits', async () => {
    const mine = installation();
    await mine.install({ wait: true, timeoutMs: 40_000 });
    const { metadata } = await cluster.admin.get(namespaces, { name: mine.namespace });
    expect(metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
    const { items } = await cluster.admin.list(pods, {
      namespace: mine.namespace,
      labelSelector: selectorOf(mine.name),
    });
    expect(items.map((pod) => [pod.metadata.ownerReferences?.[0]?.kind, pod.status?.phase])).toEqual([
      ['ReplicaSet', 'Running'],
      ['ReplicaSet', 'Running'],
    ]);

    // The level is on: a Pod that may become root is refused.
    const container = { name: 'main', image: DEFAULT_IMAGE };
    await expect(
      cluster.admin.create(pods, {
        metadata: { namespace: mine.namespace, name: 'root' },
        spec: { containers: [container] },
      }),
    ).rejects.toThrow('violates PodSecurity "restricted:latest"');
  });

  it('in namespaced mode serves the namespaces it is told, and takes rights back that are no longer needed', async () => {
    const [a, b] = [await cluster.namespace('served'), await cluster.namespace('served')];
    const mine = installation({ namespaces: [a, b] });
    const resource = `gadgets.${mine.name}.taskflow.dev`;
    const rights = async (): Promise<boolean[]> =>
      Promise.all([
        mine.canI('update', resource, '-n', a),
        mine.canI('update', resource, '-n', b),
        mine.canI('update', resource, '-n', 'default'),
        mine.canI('update', `depots.${mine.name}.taskflow.dev`),
      ]);
    await mine.install();
    expect(await rights()).toEqual([true, true, false, true]);

    expect(await mine.install({ namespaces: [a] })).toMatchObject({ created: 0, deleted: 2 });
    expect(await rights()).toEqual([true, false, false, true]);

    await expect(mine.install({ namespaces: [a, 'no-such-place'] })).rejects.toThrow(
      'kubectl create namespace no-such-place',
    );
  });

  it('a dry run lets the server check and changes nothing', async () => {
    const mine = installation();
    const objects = manifests(mine);
    expect(await mine.install({ dryRun: true })).toMatchObject({ created: objects.length });
    expect(mine.lines).toContain(
      `deployment.apps/${mine.name} -n ${mine.namespace} created ` +
        `(dry run; not checked by the server: it has no namespace ${mine.namespace} yet)`,
    );
    for (const object of objects) {
      const { name = '', namespace } = object.metadata ?? {};
      await expect(cluster.admin.get(typeOf(object), { name, namespace })).rejects.toThrow('not found');
    }

    await mine.install();
    const before = await mine.versions();
    const change = { replicas: 3, webhooks: false, dryRun: true };
    expect(await mine.install(change)).toMatchObject({ created: 0, deleted: 3 });
    expect(mine.lines).toContain(`deployment.apps/${mine.name} -n ${mine.namespace} configured (dry run)`);
    expect(mine.lines).toContain(
      `clusterrolebinding.rbac.authorization.k8s.io/${mine.name} unchanged (dry run)`,
    );
    expect(await mine.versions()).toEqual(before);
    await expect(mine.install({ replicas: -1, dryRun: true })).rejects.toThrow('spec.replicas');
  });

  it('does not take over what somebody else has set unless told to', async () => {
    const mine = installation();
    await mine.install();
    await cluster.kubectl('scale', 'deployment', mine.name, '-n', mine.namespace, '--replicas=1');
    await expect(mine.install()).rejects.toThrow(/spec\.replicas.*kubectl[^]*--force-conflicts/);
    await mine.install({ forceConflicts: true });
    const { spec } = await cluster.admin.get(deployments, mine);
    expect(spec?.replicas).toBe(2);
  });

  it('leaves a namespace that was there before as it is', async () => {
    const namespace = await cluster.namespace('mine');
    const mine = installation({ namespace });
    await mine.install();
    expect(mine.lines).toContain(
      `namespace/${namespace} unchanged (it was there before and is left as it is)`,
    );
    await mine.uninstall({ deleteCrds: true });
    const { metadata } = await cluster.admin.get(namespaces, { name: namespace });
    expect(metadata.labels).toEqual({ 'kubernetes.io/metadata.name': namespace });
  });

  it('tells why the operator does not run', async () => {
    const namespace = await cluster.namespace('full');
    await cluster.kubectl('create', 'quota', 'none', '--hard=pods=0', '-n', namespace);
    const mine = installation({ namespace });
    await expect(mine.install({ wait: true, timeoutMs: 2_000 })).rejects.toThrow(
      /gave up after 2 s waiting for deployments.apps[^]*there are no Pods/,
    );
  });

  it('leaves an installation of Helm to Helm', async () => {
    const mine = installation();
    await mine.install();
    const label = ['label', 'deployment', mine.name, '-n', mine.namespace];
    await cluster.kubectl(...label, 'app.kubernetes.io/managed-by=Helm');
    await expect(mine.install()).rejects.toThrow(`helm uninstall -n ${mine.namespace}`);
    await expect(mine.uninstall()).rejects.toThrow('Helm has installed the operator here');
    await cluster.kubectl(...label, 'app.kubernetes.io/managed-by-');
  });
});

// Side by side: they mostly wait for namespaces to end, which takes the control plane six seconds each.
describe.concurrent('uninstall', () => {
  it('removes what was installed, keeps the kinds and their objects, and is fine with nothing to do', async () => {
    const mine = installation();
    await mine.install();
    const namespace = await cluster.namespace('kept');
    await createGadget(mine, namespace, 'plain');
    const objects = manifests(mine);
    const kinds = objects.filter(({ kind }) => kind === 'CustomResourceDefinition');

    expect(await mine.uninstall()).toBe(objects.length - kinds.length);
    expect(mine.lines).toContain('3 kinds stay, with 1 objects; --delete-crds deletes them, too');
    for (const object of objects.filter((each) => !kinds.includes(each))) {
      const { name = '', namespace: where } = object.metadata ?? {};
      await expect(cluster.admin.get(typeOf(object), { name, namespace: where })).rejects.toThrow(
        'not found',
      );
    }
    expect((await cluster.admin.get(mine.gadget, { namespace, name: 'plain' })).spec).toEqual({ size: 2 });
    expect(await mine.uninstall()).toBe(0);

    expect(await mine.uninstall({ deleteCrds: true })).toBe(kinds.length);
    expect(mine.lines.slice(-3).join()).toContain(
      `gadgets.${mine.name}.taskflow.dev deleted (with 1 objects)`,
    );
  });

  it('refuses while an object has a finalizer, and names it', async () => {
    const mine = installation();
    await mine.install();
    const namespace = await cluster.namespace('held');
    await createGadget(mine, namespace, 'held', ['taskflow.dev/cleanup']);
    const before = await mine.versions();
    await expect(mine.uninstall()).rejects.toThrow(
      `  gadgets.${mine.name}.taskflow.dev ${namespace}/held (taskflow.dev/cleanup)`,
    );
    await expect(mine.uninstall({ deleteCrds: true })).rejects.toThrow(
      `kubectl delete gadgets.${mine.name}.taskflow.dev --all --all-namespaces`,
    );
    expect(await mine.versions()).toEqual(before);

    // Forced, the object stays as it is; only with its kind it is deleted as well.
    expect(await mine.uninstall({ force: true })).toBeGreaterThan(0);
    expect(
      mine.lines.find((line) => line.includes('cannot be deleted until it is installed again')),
    ).toContain(`${namespace}/held`);
    const { metadata } = await cluster.admin.get(mine.gadget, { namespace, name: 'held' });
    expect(metadata.finalizers).toEqual(['taskflow.dev/cleanup']);
    expect(await mine.uninstall({ force: true, deleteCrds: true })).toBe(3);
    expect((await cluster.kubectl('get', `gadgets.${mine.name}.taskflow.dev`, '-A')).stderr).toContain(
      "doesn't have a resource type",
    );
  });

  it('does not delete a namespace that has things of others in it', async () => {
    const mine = installation();
    await mine.install();
    await cluster.admin.create(configMaps, { metadata: { namespace: mine.namespace, name: 'precious' } });
    await mine.uninstall();
    expect(mine.lines.find((line) => line.startsWith(`namespace/${mine.namespace} stays`))).toContain(
      'configmaps precious',
    );
    await cluster.admin.get(configMaps, { namespace: mine.namespace, name: 'precious' });

    await cluster.admin.delete(configMaps, { namespace: mine.namespace, name: 'precious' });
    expect(await mine.uninstall()).toBe(1);
  });
});
