/** What the API server and kubectl make of a generated CRD. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { format } from 'prettier';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { awaitObject } from '../../src/kube/await-object.ts';
import { Invalid } from '../../src/kube/errors.ts';
import { crdYaml, customResourceDefinition, customResourceDefinitions } from '../../src/kube/schema/crd.ts';
import { type Widget, widget } from '../fixtures/widget/schema.ts';
import { useCluster } from '../support/cluster.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const cluster = useCluster();
const { admin } = cluster;
const GOLDEN = join(import.meta.dirname, '../fixtures/widget/crd.yaml');
const name = 'widgets.test.taskflow.dev';
let namespace: string;

beforeAll(async () => {
  const applied = await cluster.kubectl('apply', '--server-side', '-f', GOLDEN);
  if (applied.exitCode !== 0) throw new Error(applied.stderr);
  await awaitObject(
    admin,
    customResourceDefinitions,
    { name },
    (crd) =>
      crd.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ??
      false,
    { timeoutMs: 20_000, until: 'to be established' },
  );
  namespace = await cluster.namespace('crd');
});

function refusedFields(spec: object): Promise<readonly (string | undefined)[]> {
  return admin
    .create(widget, { metadata: { namespace, generateName: 'refused-' }, spec: spec as Widget['spec'] })
    .then(
      () => [],
      (error: unknown) => {
        if (!(error instanceof Invalid)) throw error;
        return error.causes.map(({ field, message }) => `${field}: ${message}`);
      },
    );
}

describe('the generated CRD', () => {
  it('is the one in git', async () => {
    const generated = await format(crdYaml(widget), { parser: 'yaml', singleQuote: true, printWidth: 110 });
    expect(await readFile(GOLDEN, 'utf8')).toBe(generated);
  });

  it('is accepted without complaint', async () => {
    const { status } = await admin.get(customResourceDefinitions, { name });
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'NamesAccepted', status: 'True' }),
    );
    expect(status?.conditions?.filter(({ type }) => type === 'NonStructuralSchema')).toEqual([]);
    const again = await cluster.kubectl('apply', '--server-side', '--dry-run=server', '-f', GOLDEN);
    expect(again.stderr).toBe('');
  });

  it('is small enough for plain kubectl apply, which keeps a copy of it in an annotation', () => {
    expect(JSON.stringify(customResourceDefinition(widget)).length).toBeLessThan(200 * 1024);
  });
});

describe('kubectl', () => {
  it('explains every field', async () => {
    // The API server publishes the schema some time after it took the CRD.
    const spec = await vi.waitFor(
      async () => {
        const explained = await cluster.kubectl('explain', 'widget.spec');
        expect(explained.stdout).toContain('The widget that is wanted.');
        return explained;
      },
      { timeout: 15_000, interval: 200 },
    );
    expect(spec.stdout).toMatch(/size\s+<string>[\s\S]*enum: small, medium, large\s+How big it is\./);
    const deep = await cluster.kubectl('explain', 'wd.spec.parts.weight');
    expect(deep.stdout).toContain('What one of it weighs.');
  });

  it('prints the columns, the wide ones too, under every name', async () => {
    await admin.create(widget, {
      metadata: { namespace, name: 'shown' },
      spec: { size: 'small' } as Widget['spec'],
    });
    const table = await cluster.kubectl('get', 'widgets', '-n', namespace);
    expect(table.stdout).toMatch(/^NAME +SIZE +STATUS +REPLICAS +AGE\nshown +small /);
    const wide = await cluster.kubectl('get', 'wd', '-n', namespace, '-o', 'wide');
    expect(wide.stdout).toMatch(/TIMEOUT +AGE\n.* 5m +\d+s/);
    // Kinds of other test files come and go in that category, and one that goes makes kubectl give up.
    const category = () => cluster.kubectl('get', 'taskflow', '-n', namespace, '-o', 'name');
    const shown = expect.stringContaining('widget.test.taskflow.dev/shown') as string;
    await expect.poll(category, { timeout: 20_000 }).toMatchObject({ exitCode: 0, stdout: shown });
  });

  it('scales', async () => {
    await admin.create(widget, { metadata: { namespace, name: 'scaled' }, spec: {} as Widget['spec'] });
    expect(await cluster.kubectl('scale', 'widget/scaled', '-n', namespace, '--replicas=4')).toMatchObject({
      exitCode: 0,
    });
    expect((await admin.get(widget, { namespace, name: 'scaled' })).spec.replicas).toBe(4);
  });

  it('prunes fields that nobody knows, and keeps those that are nobody’s business', async () => {
    await using directory = await temporaryDirectory();
    const file = join(directory.path, 'widget.yaml');
    const manifest = {
      apiVersion: 'test.taskflow.dev/v1alpha1',
      kind: 'Widget',
      metadata: { namespace, name: 'pruned' },
      spec: { unknown: 1, cooling: { unknown: 2, enabled: null }, settings: { anything: { goes: [1] } } },
    };
    await writeFile(file, JSON.stringify(manifest));
    expect(await cluster.kubectl('apply', '--validate=warn', '-f', file)).toMatchObject({ exitCode: 0 });
    const { spec } = await admin.get(widget, { namespace, name: 'pruned' });
    expect(spec).not.toHaveProperty('unknown');
    expect(spec.cooling).toEqual({ enabled: false });
    expect(spec.settings).toEqual({ anything: { goes: [1] } });
  });
});

describe('the API server', () => {
  it('sets the defaults, also where there is no spec at all', async () => {
    const made = await admin.create(widget, { metadata: { namespace, name: 'bare' } } as Widget);
    expect(made.spec).toEqual({
      size: 'medium',
      replicas: 1,
      maxUnavailable: '25%',
      timeout: '5m',
      parts: [],
      cooling: { enabled: false },
    });
    const parts = [{ name: 'a' }, { name: 'b', count: 7 }] as Widget['spec']['parts'];
    const nested = await admin.create(widget, {
      metadata: { namespace, name: 'nested' },
      spec: { parts } as Widget['spec'],
    });
    expect(nested.spec.parts).toEqual([
      { name: 'a', count: 1 },
      { name: 'b', count: 7 },
    ]);
  });

  it.each<readonly [spec: object, fault: string]>([
    [{ size: 'huge' }, 'spec.size: Unsupported value'],
    [{ replicas: -1 }, 'spec.replicas: Invalid value'],
    [{ replicas: 'x' }, 'spec.replicas: Invalid value'],
    [{ size: 'large', replicas: 4 }, 'spec.replicas: at most 3 large widgets are made'],
    [{ timeout: '5 minutes' }, 'spec.timeout: Invalid value'],
    [{ startAt: 'tomorrow' }, 'spec.startAt: Invalid value'],
    [{ maxUnavailable: 1.5 }, 'spec.maxUnavailable: Invalid value'],
    [{ parts: [{ name: 'a' }, { name: 'a' }] }, 'spec.parts[1]: Duplicate value'],
    [{ parts: [{ name: 'a', weight: '10GB' }] }, 'spec.parts[0].weight: Invalid value'],
    [{ parts: [{ name: 'a', tags: ['x', 'x'] }] }, 'spec.parts[0].tags[1]: Duplicate value'],
    [{ parts: [{}] }, 'spec.parts[0].name: Required value'],
    [{ cooling: { celsius: 20 } }, 'spec.cooling.celsius: Invalid value'],
    [{ labels: { a: 1 } }, 'spec.labels.a: Invalid value'],
    [{ delivery: { by: 'foot' } }, 'spec.delivery.by: Unsupported value'],
    [{ delivery: { by: 'drone' } }, 'spec.delivery.pad: Required value: pad is required when by is "drone"'],
    [
      { delivery: { by: 'drone', pad: 1, address: 'x' } },
      'spec.delivery.address: Forbidden: address may be set only when by is "post"',
    ],
  ])('refuses %j', async (spec, fault) => {
    const [field = '', ...text] = fault.split(': ');
    const faults = await refusedFields(spec);
    expect(faults.filter((found) => found?.startsWith(`${field}: `))).toContainEqual(
      expect.stringContaining(text.join(': ')),
    );
  });

  it.each([
    { size: 'large', replicas: 3 },
    { cooling: { celsius: null } },
    { maxUnavailable: 3, timeout: '1h30m', startAt: '2030-01-01T00:00:00+02:00' },
    {
      parts: [
        { name: 'a', weight: 2 },
        { name: 'b', weight: '500m', tags: ['x', 'y'] },
      ],
    },
    { delivery: { by: 'post', address: 'Main Street 1' } },
    { delivery: { by: 'drone', pad: 2 } },
    { selector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } },
  ])('takes %j', async (spec) => {
    expect(await refusedFields(spec)).toEqual([]);
  });

  it('keeps a serial number, and a name short', async () => {
    const spec = { serial: 'W-1' } as Widget['spec'];
    await admin.create(widget, { metadata: { namespace, name: 'serial' }, spec });
    const change = admin.patch(
      widget,
      { namespace, name: 'serial' },
      { kind: 'merge', body: { spec: { serial: 'W-2' } } },
    );
    await expect(change).rejects.toThrow('serial is immutable');
    const long = admin.create(widget, { metadata: { namespace, name: 'x'.repeat(41) }, spec });
    await expect(long).rejects.toThrow('the name must have at most 40 characters');
  });

  it('lets the status be written piece by piece', async () => {
    const ref = { namespace, name: 'bare' };
    const first = await admin.patch(
      widget,
      ref,
      { kind: 'merge', body: { status: { status: 'running' } } },
      { subresource: 'status' },
    );
    expect(first.status).toEqual({ status: 'running', replicas: 0 });
    const condition = {
      type: 'Ready',
      status: 'True',
      reason: 'Made',
      message: '',
      lastTransitionTime: '2030-01-01T00:00:00Z',
    };
    const second = await admin.patch(
      widget,
      ref,
      { kind: 'merge', body: { status: { conditions: [condition] } } },
      { subresource: 'status' },
    );
    expect(second.status?.conditions).toEqual([condition]);
  });

  it('merges list items of two appliers', async () => {
    const apply = (fieldManager: string, part: object): Promise<Widget> =>
      admin.apply(
        widget,
        { metadata: { namespace, name: 'merged' }, spec: { parts: [part] } as Widget['spec'] },
        { fieldManager },
      );
    await apply('one', { name: 'a', count: 1 });
    const merged = await apply('two', { name: 'b', count: 2 });
    expect(merged.spec.parts.map((part) => part.name)).toEqual(['a', 'b']);
  });
});
