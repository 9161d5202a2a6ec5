/** The test of a new kind: on a real control plane, with nothing but Node and this package. */
import type { KindNames } from './kind-names.ts';

export function testTemplate({ kind, variable, file }: KindNames): string {
  return `import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { awaitObject, configMaps, type EngineStatus, type KubeObject } from 'taskflow-operator';
import type { ControlPlane } from 'taskflow-operator/local-cluster';
import {
  type RunningOperator,
  runTaskTwice,
  startOperator,
  startTestPlane,
  untilState,
} from 'taskflow-operator/testing';
import ${variable} from './${file}.ts';

const PLUGIN = fileURLToPath(new URL('./${file}.ts', import.meta.url));

describe('${kind}', () => {
  let plane: ControlPlane;
  let operator: RunningOperator;

  before(async () => {
    plane = await startTestPlane();
    operator = await startOperator({ plugins: [PLUGIN], cluster: plane.clusters[0] });
  });
  after(async () => {
    await operator?.stop();
    await plane?.stop();
  });

  it('reaches "running", though the operator is killed in the middle', async () => {
    const { admin } = plane.clusters[0];
    const ref = { name: 'first', namespace: 'default' };
    await admin.create(${variable}.schema, { metadata: ref, spec: { message: 'hello', seconds: 3 } });
    const hasSaved = ({ status }: KubeObject & { status?: EngineStatus }) =>
      status?.operationContext?.checkpoint?.['left'] === '2';
    await awaitObject(admin, ${variable}.schema, ref, hasSaved, { timeoutMs: 20_000, until: 'to count down' });
    await operator.kill();
    await operator.restart();

    const { status } = await untilState(admin, ${variable}, ref, 'running');
    assert.equal(status?.['message'], 'hello');
    assert.equal(status?.operationHistory?.[0]?.result, 'Succeeded');
    const { data } = await admin.get(configMaps, { ...ref, name: 'first-message' });
    assert.deepEqual(data, { message: 'hello' });
  });

  it('does nothing the second time', async () => {
    const { admin: client } = plane.clusters[0];
    const ref = { name: 'second', namespace: 'default' };
    await client.create(${variable}.schema, { metadata: ref, spec: { message: 'hello', seconds: 0 } });
    const object = await untilState(client, ${variable}, ref, 'running');
    for (const task of ['count down', 'write config map'])
      assert.deepEqual((await runTaskTwice(${variable}, task, { object, client })).changes, []);
  });
});
`;
}
