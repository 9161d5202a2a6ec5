/** Certificates and configurations that keep themselves right, on the real API server and under load. */
import { X509Certificate } from 'node:crypto';
import { Agent, request } from 'undici';
import { beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { secrets, serviceAccounts } from '../../src/kube/builtin-resources.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { openConnection } from '../../src/kube/connection.ts';
import { NotFound } from '../../src/kube/errors.ts';
import { defineResource, type KubeObject } from '../../src/kube/resource-type.ts';
import { namespacedOperatorRoles, type RbacRule, type Role } from '../../src/kube/schema/rbac.ts';
import { ownCertificates, type ServingCertificates } from '../../src/webhooks/certificates.ts';
import {
  ConfigurationKeeper,
  mutatingConfigurations,
  validatingConfigurations,
} from '../../src/webhooks/configuration.ts';
import { certificateRules, configurationRules } from '../../src/webhooks/permissions.ts';
import { webhookKind } from '../../src/webhooks/rules.ts';
import { installWidget } from '../fixtures/widget/install.ts';
import { type Widget, widget } from '../fixtures/widget/schema.ts';
import { widgetRules } from '../fixtures/widget/webhook.ts';
import { removeConfigurations, serve, untilCalled } from '../fixtures/webhooks/serving.ts';
import { useCluster } from '../support/cluster.ts';
import { requestToken } from '../support/service-account.ts';

const cluster = useCluster();
const { admin } = cluster;
const address = inject('cluster');
const kinds = [webhookKind(widget, widgetRules)];

beforeAll(() => installWidget(admin));

function nextChange(certificates: ServingCertificates): Promise<void> {
  return new Promise((resolve) => {
    const forget = certificates.onChange(() => {
      forget();
      resolve();
    });
  });
}

async function liveBundle(name: string): Promise<string> {
  const { webhooks } = await admin.get(validatingConfigurations, { name });
  return Buffer.from(webhooks?.[0]?.clientConfig.caBundle ?? '', 'base64').toString('utf8');
}

describe('renewal under load', () => {
  it('drops no request while certificate and authority are renewed several times', async () => {
    const namespace = await cluster.namespace('renewal');
    await using serving = await serve({
      client: admin,
      namespace,
      kinds,
      certificates: { lifetimeMs: 6_000, authorityLifetimeMs: 9_000, overlapMs: 1_000 },
    });
    const { certificates, name } = serving;
    await untilCalled(async () => {
      const made = await admin.create(widget, { metadata: { namespace, name: 'probe' } } as Widget, {
        dryRun: true,
      });
      return made.spec.labels?.['maker'] !== undefined;
    });

    const served = new Set([certificates.current.certPem]);
    const trusted = new Set(certificates.caBundle?.split(/(?=-----BEGIN)/));
    const signers = new Set([signerOf(certificates)]);
    const enough = Promise.withResolvers<void>();
    certificates.onChange(() => {
      served.add(certificates.current.certPem);
      for (const pem of certificates.caBundle?.split(/(?=-----BEGIN)/) ?? []) trusted.add(pem);
      signers.add(signerOf(certificates));
      if (signers.size >= 3) enough.resolve();
    });

    const load = { done: false, created: 0, handshakes: 0 };
    const creating = Array.from({ length: 4 }, async (_, worker) => {
      for (let round = 0; !load.done; round++) {
        const metadata = { namespace, name: `load-${worker}-${round}` };
        // Every tenth is stored; the others only pass through the webhooks.
        const made = await admin.create(widget, { metadata } as Widget, { dryRun: round % 10 !== 0 });
        expect(made.spec.labels?.['maker']).toBeDefined();
        load.created++;
      }
    });
    // A client without a past: every request is a handshake that trusts what the configuration says.
    const handshaking = (async () => {
      while (!load.done) {
        expect(await call(serving.server.port, await liveBundle(name))).toBe(200);
        load.handshakes++;
      }
    })();
    const all = Promise.all([...creating, handshaking]);
    await Promise.race([enough.promise, all]);
    load.done = true;
    await all;

    expect(signers.size).toBeGreaterThanOrEqual(3);
    expect(trusted.size).toBeGreaterThanOrEqual(3);
    expect(served.size).toBeGreaterThanOrEqual(3);
    expect(load.created).toBeGreaterThan(50);
    expect(load.handshakes).toBeGreaterThan(20);
  }, 120_000);

  async function call(port: number, ca: string): Promise<number> {
    const agent = new Agent({ connect: { ca }, allowH2: false });
    try {
      const { statusCode, body } = await request(
        `https://127.0.0.1:${port}/validate/test.taskflow.dev/v1alpha1/widgets`,
        {
          dispatcher: agent,
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            apiVersion: 'admission.k8s.io/v1',
            kind: 'AdmissionReview',
            request: {
              uid: 'u1',
              kind: { group: 'test.taskflow.dev', version: 'v1alpha1', kind: 'Widget' },
              operation: 'CREATE',
              object: { metadata: { name: 'direct' }, spec: {} },
            },
          }),
        },
      );
      await body.dump();
      return statusCode;
    } finally {
      await agent.destroy();
    }
  }
});

function signerOf({ current, caBundle = '' }: ServingCertificates): string {
  const certificate = new X509Certificate(current.certPem);
  const signer = caBundle
    .split(/(?=-----BEGIN)/)
    .find((pem) => certificate.verify(new X509Certificate(pem).publicKey));
  return signer ?? 'nobody';
}

describe('replicas', () => {
  it('agree on one certificate, however they start, and renew it for each other', async () => {
    const namespace = await cluster.namespace('replicas');
    const start = (): Promise<ServingCertificates> =>
      ownCertificates({
        client: admin,
        namespace,
        secretName: 'shared',
        hosts: ['127.0.0.1'],
        lifetimeMs: 6_000,
        overlapMs: 500,
      });
    const replicas = await Promise.all(Array.from({ length: 4 }, start));
    try {
      const bundles = new Set(replicas.map(({ caBundle }) => caBundle));
      expect(bundles.size).toBe(1);
      const first = replicas[0]?.current;
      expect(new Set(replicas.map(({ current }) => current.certPem)).size).toBe(1);
      await Promise.all(replicas.map(nextChange));
      await vi.waitFor(() => expect(new Set(replicas.map(({ current }) => current.certPem)).size).toBe(1), {
        timeout: 5_000,
      });
      expect(replicas[0]?.current).not.toEqual(first);
      expect(new Set(replicas.map(({ caBundle }) => caBundle))).toEqual(bundles);
    } finally {
      await Promise.all(replicas.map((replica) => replica.stop()));
    }
  });

  it('take over what a former one left, and mend what somebody broke', async () => {
    const namespace = await cluster.namespace('mended');
    const ref = { namespace, name: 'shared' };
    const options = { client: admin, namespace, secretName: ref.name, hosts: ['127.0.0.1'] };
    const former = await ownCertificates(options);
    await former.stop();
    const next = await ownCertificates(options);
    try {
      expect(next.current).toEqual(former.current);
      // Deleted: the same comes back, since the API servers trust it.
      await admin.delete(secrets, ref);
      await vi.waitFor(() => admin.get(secrets, ref), { timeout: 5_000 });
      expect(next.current).toEqual(former.current);
      // Spoilt: the certificate is made anew by the same authority.
      const changed = nextChange(next);
      await admin.patch(secrets, ref, { kind: 'merge', body: { data: { 'tls.crt': 'AAAA' } } });
      await changed;
      expect(next.caBundle).toBe(former.caBundle);
      expect(signerOf(next)).not.toBe('nobody');
    } finally {
      await next.stop();
    }
  });

  it('say what they may not do', async () => {
    const secretName = 'shared';
    const options = { client: admin, namespace: 'not-there', secretName, hosts: ['127.0.0.1'] };
    await using stranger = await strangerIn(await cluster.namespace('stranger'), []);
    await Promise.all([
      expect(ownCertificates(options)).rejects.toThrow('namespaces "not-there" not found'),
      expect(ownCertificates({ ...options, ...stranger })).rejects.toThrow('is forbidden'),
    ]);
  });
});

describe('the configurations', () => {
  it('are put right after somebody changed or deleted them, and left alone otherwise', async () => {
    const namespace = await cluster.namespace('drift');
    await using serving = await serve({ client: admin, namespace, kinds });
    const { name, certificates } = serving;
    const versions = async (): Promise<(string | undefined)[]> => [
      (await admin.get(mutatingConfigurations, { name })).metadata.resourceVersion,
      (await admin.get(validatingConfigurations, { name })).metadata.resourceVersion,
    ];
    const before = await versions();

    // A second replica finds everything right and writes nothing.
    const second = await ownCertificates({
      client: admin,
      namespace,
      secretName: name,
      hosts: ['127.0.0.1'],
    });
    const other = new ConfigurationKeeper({
      client: admin,
      kinds,
      name,
      endpoint: { url: `https://127.0.0.1:${serving.server.port}` },
      certificates: second,
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    });
    await other.start();
    expect(await versions()).toEqual(before);
    await other.stop();
    await second.stop();

    await admin.patch(
      validatingConfigurations,
      { name },
      {
        kind: 'json',
        body: [
          {
            op: 'replace',
            path: '/webhooks/0/clientConfig/caBundle',
            value: Buffer.from(certificates.current.certPem).toString('base64'),
          },
          { op: 'replace', path: '/webhooks/0/failurePolicy', value: 'Ignore' },
        ],
      },
    );
    await vi.waitFor(
      async () => {
        expect(await liveBundle(name)).toBe(certificates.caBundle);
        const { webhooks } = await admin.get(validatingConfigurations, { name });
        expect(webhooks?.[0]?.failurePolicy).toBe('Fail');
      },
      { timeout: 10_000, interval: 20 },
    );

    await admin.delete(mutatingConfigurations, { name });
    await vi.waitFor(() => admin.get(mutatingConfigurations, { name }), { timeout: 10_000, interval: 20 });
  });

  it('lose the webhook of a kind that is no longer served', async () => {
    const namespace = await cluster.namespace('fewer');
    await using serving = await serve({ client: admin, namespace, kinds });
    serving.keeper.replaceKinds([]);
    await vi.waitFor(
      async () => {
        const { webhooks } = await admin.get(mutatingConfigurations, { name: serving.name });
        expect(webhooks ?? []).toEqual([]);
      },
      { timeout: 10_000, interval: 20 },
    );
  });

  it('are not fought over: repairs that do not last become rare', async () => {
    const namespace = await cluster.namespace('fight');
    await using serving = await serve({ client: admin, namespace, kinds });
    const { name } = serving;
    const pauses: number[] = [];
    for (let round = 0; round < 4; round++) {
      const began = performance.now();
      await admin.patch(
        mutatingConfigurations,
        { name },
        { kind: 'json', body: [{ op: 'replace', path: '/webhooks/0/failurePolicy', value: 'Ignore' }] },
      );
      await vi.waitFor(
        async () => {
          const { webhooks } = await admin.get(mutatingConfigurations, { name });
          expect(webhooks?.[0]?.failurePolicy).toBe('Fail');
        },
        { timeout: 20_000, interval: 20 },
      );
      pauses.push(performance.now() - began);
    }
    // Two at once, then a second later, then two.
    expect(pauses[2]).toBeGreaterThan(800);
    expect(pauses[3]).toBeGreaterThan(1_600);
  });
});

const roleTypes = {
  Role: defineResource<Role>('rbac.authorization.k8s.io/v1', 'Role', 'roles', 'Namespaced'),
  ClusterRole: defineResource<Role>('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles', 'Cluster'),
};
interface Binding extends KubeObject {
  roleRef: { apiGroup: string; kind: string; name: string };
  subjects: { kind: string; name: string; namespace: string }[];
}
const roleBindings = defineResource<Binding>(
  'rbac.authorization.k8s.io/v1',
  'RoleBinding',
  'rolebindings',
  'Namespaced',
);
const clusterRoleBindings = defineResource<Binding>(
  'rbac.authorization.k8s.io/v1',
  'ClusterRoleBinding',
  'clusterrolebindings',
  'Cluster',
);

/** A ServiceAccount with these rights and no others. */
async function strangerIn(namespace: string, rules: readonly RbacRule[]) {
  const name = 'operator';
  await admin.create(serviceAccounts, { metadata: { namespace, name } });
  const clusterName = `${namespace}-operator`;
  const { clusterRole, roles } = namespacedOperatorRoles({
    name: clusterName,
    namespaces: [namespace],
    rules,
  });
  const subjects = [{ kind: 'ServiceAccount', name, namespace }];
  const apiGroup = 'rbac.authorization.k8s.io';
  for (const role of roles) {
    await admin.create(roleTypes.Role, role);
    const roleRef = { apiGroup, kind: 'Role', name: clusterName };
    await admin.create(roleBindings, { metadata: { namespace, name }, roleRef, subjects });
  }
  if (clusterRole) {
    await admin.create(roleTypes.ClusterRole, clusterRole);
    const roleRef = { apiGroup, kind: 'ClusterRole', name: clusterName };
    await admin.create(clusterRoleBindings, { metadata: { name: clusterName }, roleRef, subjects });
  }
  const token = await requestToken(admin, { namespace, name });
  const connection = openConnection({ server: address.server, ca: address.ca, token });
  return {
    client: new KubeClient(connection),
    namespace,
    async [Symbol.asyncDispose]() {
      await connection.close();
      if (!clusterRole) return;
      await admin.delete(clusterRoleBindings, { name: clusterName });
      await admin.delete(roleTypes.ClusterRole, { name: clusterName });
    },
  };
}

describe('the declared rights', () => {
  const rightsFor = (name: string): readonly RbacRule[] => [
    ...certificateRules(name),
    ...configurationRules(name),
  ];

  /** Everything that takes rights: make, watch, restore. */
  async function exercise(client: KubeClient, namespace: string): Promise<void> {
    const name = namespace;
    const certificates = await ownCertificates({ client, namespace, secretName: name, hosts: ['127.0.0.1'] });
    const keeper = new ConfigurationKeeper({
      client,
      kinds,
      name,
      endpoint: { url: 'https://127.0.0.1:1' },
      certificates,
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'nowhere' } },
    });
    try {
      await soon(keeper.start());
      await admin.delete(validatingConfigurations, { name });
      await vi.waitFor(() => admin.get(validatingConfigurations, { name }), { timeout: PATIENCE_MS });
      const changed = nextChange(certificates);
      await admin.patch(
        secrets,
        { namespace, name },
        { kind: 'merge', body: { data: { 'tls.crt': 'AAAA' } } },
      );
      await soon(changed);
    } finally {
      await keeper.stop();
      await certificates.stop();
      await removeConfigurations(admin, name);
    }
  }

  it.concurrent('are enough', async () => {
    const namespace = await cluster.namespace('rights');
    await using stranger = await strangerIn(namespace, rightsFor(namespace));
    await untilAllowed(stranger.client, namespace);
    await expect(exercise(stranger.client, namespace)).resolves.toBeUndefined();
  });

  const grants = rightsFor('x').flatMap(({ verbs, resources }, index) =>
    verbs.map((verb) => ({ index, verb, resources })),
  );
  // A list is asked for only where the server cannot stream it, and every ten minutes to look for misses.
  it.concurrent.each(grants.filter(({ verb }) => verb !== 'list'))(
    'are not enough without $verb of $resources',
    async ({ index, verb }) => {
      const namespace = await cluster.namespace('fewer-rights');
      const fewer = rightsFor(namespace).map((rule, at) =>
        at === index ? { ...rule, verbs: rule.verbs.filter((other) => other !== verb) } : rule,
      );
      await using stranger = await strangerIn(namespace, fewer);
      if (!(index === 0 && verb === 'get')) await untilAllowed(stranger.client, namespace);
      await expect(exercise(stranger.client, namespace)).rejects.toThrow(
        /forbidden|did not happen|not found/,
      );
    },
  );

  /** The API server learns of roles in its own time too. */
  async function untilAllowed(client: KubeClient, namespace: string): Promise<void> {
    await vi.waitFor(
      () => expect(client.get(secrets, { namespace, name: namespace })).rejects.toThrow(NotFound),
      {
        timeout: 5_000,
        interval: 50,
      },
    );
  }

  const PATIENCE_MS = 4_000;
  function soon<T>(work: Promise<T>): Promise<T> {
    return Promise.race([
      work,
      new Promise<never>((_, reject) => {
        setTimeout(() => reject(new Error('it did not happen')), PATIENCE_MS).unref();
      }),
    ]);
  }
});
