/** Dependencies point one way, and systems know nothing of each other. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const SRC = join(import.meta.dirname, '../../src');

/** What a layer may import besides itself. Files directly in src/ are the public face and free. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  kube: [],
  runtime: ['kube'],
  'task-manager': ['kube'],
  taskflow: ['kube', 'runtime', 'task-manager'],
  webhooks: ['kube', 'runtime'],
  'resource-managers': ['kube', 'runtime', 'task-manager', 'taskflow', 'webhooks'],
  'local-cluster': ['kube'],
  cli: ['kube', 'runtime', 'task-manager', 'taskflow', 'webhooks', 'resource-managers', 'local-cluster'],
  // On top of everything: it runs the command, and installs as the command does.
  testing: ['kube', 'runtime', 'taskflow', 'resource-managers', 'local-cluster', 'cli'],
};
/** Imports nothing, so everybody may import it. */
const FREE = new Set(['version.ts']);

interface Import {
  readonly from: string;
  readonly to: string;
}

function faultOf({ from, to }: Import): string | undefined {
  const [layer = '', system = ''] = from.split('/');
  const [toLayer = '', toSystem = ''] = to.split('/');
  if (!from.includes('/') || FREE.has(to)) return undefined;
  if (MAY_IMPORT[layer] === undefined) return `${from}: src/${layer} is no layer that design names`;
  if (layer !== toLayer)
    return MAY_IMPORT[layer].includes(toLayer) ? undefined : `${from} imports upwards: ${to}`;
  if (layer !== 'resource-managers') return undefined;
  const inSystem = from.split('/').length > 2;
  const toAnotherSystem = to.split('/').length > 2 && system !== toSystem;
  return toAnotherSystem
    ? `${from} imports another ${inSystem ? 'system' : 'layer, a system'}: ${to}`
    : undefined;
}

function* importsOf(file: string): Generator<Import> {
  const source = readFileSync(join(SRC, file), 'utf8');
  for (const [, target = ''] of source.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g))
    yield { from: file, to: relative(SRC, join(SRC, dirname(file), target)) };
}

describe('layers', () => {
  it('no file imports upwards or from another system', () => {
    const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
    );
    const imports = files.flatMap((file) => [...importsOf(file)]);
    expect(imports.length).toBeGreaterThan(20);
    expect(imports.map(faultOf).filter((fault) => fault !== undefined)).toEqual([]);
  });

  it.each([
    ['kube/client.ts', 'runtime/queue.ts', 'imports upwards'],
    ['local-cluster/cluster.ts', 'cli/main.ts', 'imports upwards'],
    ['local-cluster/cluster.ts', 'index.ts', 'imports upwards'],
    ['resource-managers/iac/run/tasks.ts', 'resource-managers/ramen/drpc/tasks.ts', 'another system'],
    ['resource-managers/base.ts', 'resource-managers/iac/index.ts', 'a system'],
    ['misc/things.ts', 'kube/client.ts', 'no layer'],
  ])('%s importing %s is a fault', (from, to, fault) => {
    expect(faultOf({ from, to })).toContain(fault);
  });

  it.each([
    ['runtime/controller.ts', 'kube/client.ts'],
    ['resource-managers/iac/run/tasks.ts', 'resource-managers/base.ts'],
    ['resource-managers/iac/run/tasks.ts', 'resource-managers/iac/terraform/run.ts'],
    ['cli/main.ts', 'version.ts'],
    ['index.ts', 'taskflow/flow.ts'],
  ])('%s importing %s is fine', (from, to) => {
    expect(faultOf({ from, to })).toBeUndefined();
  });
});
