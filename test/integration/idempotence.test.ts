/** What every task promises: run a second time, as after a crash, it changes nothing. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../src/kube/resource-type.ts';
import { loadPlugins } from '../../src/cli/operator/plugins.ts';
import type { DefinedKind } from '../../src/resource-managers/define-kind.ts';
import type { OperatorKind } from '../../src/resource-managers/kind.ts';
import { SYSTEMS } from '../../src/resource-managers/systems.ts';
import { applyMergePatch } from '../../src/taskflow/merge-patch.ts';
import type { WaitOutcome } from '../../src/taskflow/task-definition.ts';
import { runTaskTwice } from '../../src/testing/index.ts';
import { useCluster } from '../support/cluster.ts';
import { installCrd } from '../support/install-operator.ts';

/** An object for the tasks of each kind to work on. A kind without one is a failure. */
const SAMPLES: Readonly<Record<string, string>> = {
  Greeting: '01-hello-flow/greeting.yaml',
  Release: '02-waiting/release.yaml',
  Survey: '03-parallel/survey.yaml',
  Trip: '04-graph-with-undo/trip.yaml',
  Phrasebook: '05-extend-a-flow/phrasebook.yaml',
};
const EXAMPLES = join(import.meta.dirname, '../../examples');
const PLUGINS = [
  '01-hello-flow/greeting.ts',
  '02-waiting/release.ts',
  '03-parallel/survey.ts',
  '04-graph-with-undo/trip.ts',
  '05-extend-a-flow/phrasebook.ts',
];
/** Late enough that tasks which fail at first on purpose no longer do. */
const ATTEMPT = 9;

const cluster = useCluster();
const { systems } = await loadPlugins(PLUGINS.map((file) => join(EXAMPLES, file)));
const kinds = [...SYSTEMS, ...systems].flatMap((system) => system.kinds).filter(hasFlows);

function hasFlows(kind: OperatorKind): kind is DefinedKind {
  return kind.flowKind !== undefined;
}

async function sampleOf(kind: DefinedKind, namespace: string): Promise<KubeObject> {
  const file = SAMPLES[kind.schema.kind];
  if (file === undefined) throw new Error(`SAMPLES has no object of kind ${kind.schema.kind}`);
  const sample = load(await readFile(join(EXAMPLES, file), 'utf8')) as KubeObject;
  return { ...sample, metadata: { ...sample.metadata, namespace } };
}

describe('engine #30: every registered task, run twice', () => {
  it.each(kinds.map((kind) => [kind.schema.kind, kind] as const))('%s', async (_, kind) => {
    await installCrd(cluster.admin, kind.schema);
    const namespace = await cluster.namespace('twice');
    let object = await cluster.admin.create(kind.schema, (await sampleOf(kind, namespace)) as never);
    const changes: Record<string, readonly string[]> = {};
    for (const { name } of (kind.flowKind.tasks as ReadonlyMap<string, { name: string }>).values()) {
      const twice = await runTaskTwice(kind, name, {
        object,
        client: cluster.admin,
        item: 'north',
        attempt: ATTEMPT,
      });
      changes[name] = twice.changes;
      const status = (twice.first as Partial<WaitOutcome> | undefined)?.status;
      object = { ...object, status: applyMergePatch(object.status ?? {}, status ?? {}) };
    }
    expect(Object.keys(changes).length).toBeGreaterThan(0);
    expect(Object.entries(changes).filter(([, made]) => made.length > 0)).toEqual([]);
  });
});
