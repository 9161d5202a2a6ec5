/** What `npm run generate` writes for a system, and what the real API server says to it. */
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineSchema, type ObjectOf } from '../../src/kube/schema/define-schema.ts';
import {
  anyValue,
  atomicList,
  atomicObject,
  cel,
  conditions,
  duration,
  embeddedMetadata,
  embeddedResource,
  immutable,
  intOrString,
  labelSelector,
  listMap,
  listSet,
  localReference,
  preserveUnknownFields,
  quantity,
  timestamp,
} from '../../src/kube/schema/kubernetes-types.ts';
import type { Role } from '../../src/kube/schema/rbac.ts';
import { crds } from '../../tools/generate/crds.ts';
import { rbac } from '../../tools/generate/rbac.ts';
import { installKind } from '../fixtures/widget/install.ts';
import { widget } from '../fixtures/widget/schema.ts';
import { useCluster } from '../support/cluster.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const cluster = useCluster();
const { admin } = cluster;

/** Every form that a structural schema can come out with. */
const specimen = defineSchema({
  group: 'test.taskflow.dev',
  version: 'v1',
  kind: 'Specimen',
  plural: 'specimens',
  scope: 'Cluster',
  categories: ['tests'],
  spec: z
    .object({
      text: z.string().min(1).max(9).regex(/^a/).regex(/z$/i),
      escaped: z.string().regex(/^\/[\u00e0-\u00ff]\p{L}$/u),
      oneOf: z.union([z.string().max(2), z.string().regex(/^x/)]),
      template: z.templateLiteral(['v', z.int()]),
      formats: z.object({
        email: z.email(),
        url: z.url(),
        uuid: z.uuid(),
        ipv4: z.ipv4(),
        ipv6: z.ipv6(),
        network: z.cidrv4(),
        mac: z.mac(),
        host: z.hostname(),
        time: timestamp(),
        date: z.iso.date(),
        bytes: z.base64(),
        short: z.cuid2(),
      }),
      numbers: z.object({
        int: z.int(),
        int32: z.int32(),
        uint32: z.uint32(),
        float: z.float32(),
        double: z.float64(),
        open: z.number().gt(0).lt(1),
        even: z.int().multipleOf(2),
      }),
      fixed: z.object({
        words: z.enum(['on', 'off', 'yes', 'null', '1']),
        digits: z.literal([1, 2]),
        always: z.literal(true),
      }),
      nullable: z.string().nullable(),
      defaulted: z.object({ a: z.int32().default(1), b: z.array(z.string()).default(['x']) }).prefault({}),
      record: z.record(z.string(), z.int32()),
      known: z.partialRecord(z.enum(['left', 'right']), z.string()),
      any: anyValue(),
      loose: z.looseObject({ named: z.string() }),
      open: preserveUnknownFields(),
      object: embeddedResource(),
      metadata: embeddedMetadata(),
      selector: labelSelector(),
      reference: localReference(),
      percent: intOrString(),
      perhaps: intOrString().nullable(),
      amount: quantity(),
      wait: duration(),
      once: immutable(z.string().max(20)),
      byName: listMap(z.array(z.object({ name: z.string().max(9), key: z.int32().default(0) })).max(9), [
        'name',
        'key',
      ]),
      set: listSet(z.array(z.string())),
      list: atomicList(z.array(z.array(z.string()))),
      atom: atomicObject(z.object({ a: z.string().optional() })),
      choices: z
        .array(
          z.discriminatedUnion('type', [
            z.object({
              type: z.literal('http'),
              url: z.string().max(90),
              namespace: z.string().default('x'),
            }),
            z.object({
              type: z.literal(['job', 'cron']),
              image: z.string(),
              'pull-policy': z.string().optional(),
            }),
          ]),
        )
        .max(20),
    })
    .partial(),
  status: z.object({ conditions: conditions().optional() }),
  rules: [
    { rule: '!has(self.spec.text) || self.spec.text != "abz"', messageExpression: '"no " + self.spec.text' },
  ],
});
type Specimen = ObjectOf<typeof specimen>;

const systems = [
  {
    name: 'museum',
    kinds: [
      { schema: specimen, rbac: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }] },
      {
        schema: widget,
        rbac: [{ apiGroups: ['batch'], resources: ['jobs'], verbs: ['create'] }],
      },
    ],
  },
];

/** Asks the API server about the files without leaving anything there. */
async function offered(files: Readonly<Record<string, string>>) {
  await using directory = await temporaryDirectory();
  for (const [name, content] of Object.entries(files))
    await writeFile(join(directory.path, basename(name)), content);
  return await cluster.kubectl('apply', '--server-side', '--dry-run=server', '-f', directory.path);
}

describe('generated CRDs', () => {
  it('are one file per kind, and the API server takes them without a warning', async () => {
    const files = await crds(systems);
    expect(Object.keys(files)).toEqual([
      'crds/test.taskflow.dev_specimens.yaml',
      'crds/test.taskflow.dev_widgets.yaml',
    ]);
    expect(await offered(files)).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('say in every form what zod says', async () => {
    await installKind(admin, specimen);
    const spec = {
      text: 'abcZ',
      escaped: '/\u00e9\u00e9',
      oneOf: 'xyz',
      template: 'v12',
      fixed: { words: 'on', digits: 2, always: true },
      nullable: null,
      perhaps: null,
      known: { left: 'a' },
      any: [1, 'two', { three: null }],
      open: { a: 1 },
      object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } },
      percent: '5%',
      amount: '1Gi',
      byName: [{ name: 'a' }, { name: 'a', key: 1 }],
      choices: [
        { type: 'http', url: 'x' },
        { type: 'cron', image: 'y' },
      ],
    };
    expect(specimen.spec.safeParse(spec).error).toBeUndefined();
    const made = await admin.create(specimen, { metadata: { name: 'full' }, spec } as unknown as Specimen);
    expect(made.spec).toMatchObject({
      nullable: null,
      perhaps: null,
      any: [1, 'two', { three: null }],
      byName: [{ key: 0 }, { key: 1 }],
    });
    await admin.delete(specimen, { name: 'full' });
  });

  it.each<readonly [spec: object, message: string]>([
    [{ text: 'bz' }, 'spec.text'],
    [{ text: 'abz' }, 'no abz'],
    [{ escaped: 'e' }, 'spec.escaped'],
    [{ oneOf: 'abc' }, 'spec.oneOf'],
    [{ fixed: { words: 'off', digits: 3, always: true } }, 'spec.fixed.digits'],
    [{ numbers: { int32: 2 ** 31 } }, 'spec.numbers.int32'],
    [{ choices: [{ type: 'http' }] }, 'url is required when type is "http"'],
    [{ choices: [{ type: 'job', image: 'x', url: 'y' }] }, 'url may be set only when type is "http"'],
    [
      { choices: [{ type: 'http', url: 'x', 'pull-policy': 'y' }] },
      'pull-policy may be set only when type is "job" or "cron"',
    ],
    [
      { choices: [{ type: 'job', image: 'x', namespace: 'y' }] },
      'namespace may be set only when type is "http"',
    ],
    [{ object: { kind: 'Pod' } }, 'spec.object.apiVersion'],
  ])('refuse %j', async (spec, message) => {
    await installKind(admin, specimen);
    const made = admin.create(
      specimen,
      { metadata: { name: 'refused' }, spec },
      {
        dryRun: true,
      },
    );
    await expect(made).rejects.toThrow(message);
  });

  it('refuse to become larger than kubectl can apply', async () => {
    const large = defineSchema({
      ...specimenNames,
      spec: z.object({ a: z.string().describe('x'.repeat(300_000)) }),
      status: z.object({}),
    });
    await expect(crds([{ name: 'large', kinds: [{ schema: large, rbac: [] }] }])).rejects.toThrow(
      'is larger than',
    );
  });

  it('fail where a rule is not CEL', async () => {
    const wrong = defineSchema({
      ...specimenNames,
      spec: z.object({ a: cel(z.string(), 'self.nope(', 'x') }),
      status: z.object({}),
    });
    const answer = await offered(await crds([{ name: 'wrong', kinds: [{ schema: wrong, rbac: [] }] }]));
    expect(answer.exitCode).toBe(1);
    expect(answer.stderr).toContain('compilation failed');
  });
});

const specimenNames = { group: 'test.taskflow.dev', version: 'v1', kind: 'Other' };

describe('generated roles', () => {
  it('are one for the operator and two for the users of each system', async () => {
    const files = await rbac(systems);
    expect(Object.keys(files)).toEqual([
      'config/rbac/operator.yaml',
      'config/rbac/operator-own-namespace.yaml',
      'config/rbac/museum-editor.yaml',
      'config/rbac/museum-viewer.yaml',
    ]);
    const { rules } = load(files['config/rbac/operator.yaml'] ?? '') as Role;
    const ours = 'test.taskflow.dev';
    const full = ['get', 'list', 'patch', 'update', 'watch'];
    expect(rules).toEqual(
      expect.arrayContaining([
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
        { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create'] },
        { apiGroups: [ours], resources: ['specimens', 'widgets'], verbs: full },
        { apiGroups: [ours], resources: ['specimens/finalizers', 'widgets/finalizers'], verbs: ['update'] },
        {
          apiGroups: [ours],
          resources: ['specimens/status', 'widgets/status'],
          verbs: ['get', 'patch', 'update'],
        },
      ]),
    );
    expect(rules.flatMap(({ verbs, resources }) => [...verbs, ...resources])).not.toContain('*');
    // The Role's namespace is made by the installation.
    const clusterWide = Object.entries(files).filter(([, content]) => content.includes('kind: ClusterRole'));
    expect(await offered(Object.fromEntries(clusterWide))).toMatchObject({ exitCode: 0, stderr: '' });
  });
});
