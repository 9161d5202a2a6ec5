/** The test kit as an author of kinds uses it: imported by name, and nothing else of ours but the shared cluster. */
import { fileURLToPath } from 'node:url';
import { awaitObject, type EngineStatus } from 'taskflow-operator';
import { manualClock, runTaskTwice, startOperator, untilState } from 'taskflow-operator/testing';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { useCluster } from '../support/cluster.ts';
import parcel from '../fixtures/parcel.ts';
import { installCrd } from '../support/install-operator.ts';

const PLUGIN = fileURLToPath(new URL('../fixtures/parcel.ts', import.meta.url));

describe('the test kit', () => {
  const shared = useCluster();
  const { admin } = shared;
  const cluster = { ...inject('cluster'), admin };

  beforeAll(() => installCrd(admin, parcel.schema));

  async function newParcel() {
    const metadata = { name: 'gift', namespace: await shared.namespace('kit') };
    return admin.create(parcel.schema, { metadata, spec: { to: 'Ada' } });
  }

  it.each([
    ['apply label', []],
    ['create label', [expect.stringMatching(/^the second run failed: .*already exists/)]],
    ['create many labels', [expect.stringMatching(/^create configmaps kit-/)]],
    ['count up', ['the status is set to {"sent":2}, after {"sent":1}']],
  ])('tells what the second run of "%s" changes', async (task, changes) => {
    const object = await newParcel();
    expect((await runTaskTwice(parcel, task, { object, client: admin })).changes).toEqual(changes);
  });

  it('tells what a task changes outside of the cluster', async () => {
    const object = await newParcel();
    const world = { letters: 0 };
    const look = (): object => ({ letters: world.letters++ });
    const { first, changes } = await runTaskTwice(parcel, 'apply label', {
      object,
      client: admin,
      world: look,
    });
    expect(first).toEqual({ status: { sent: 1 } });
    expect(changes).toEqual(['the world was {"letters":0} and is {"letters":1}']);
  });

  it('knows the tasks of the kind', async () => {
    const object = await newParcel();
    await expect(runTaskTwice(parcel, 'sing', { object, client: admin })).rejects.toThrow(
      'Parcel has no task "sing" (it has: apply label, create label,',
    );
  });

  it('runs an operator that can be killed and started again', async () => {
    await using operator = await startOperator({ plugins: [PLUGIN], cluster });
    const { metadata } = await newParcel();
    const waits = ({ status }: { status?: EngineStatus }): boolean =>
      status?.operationContext?.waitingFor === 'the courier';
    await awaitObject(admin, parcel.schema, metadata, waits, { timeoutMs: 20_000, until: 'to wait' });
    await expect(untilState(admin, parcel, metadata, 'sent', { timeoutMs: 1 })).rejects.toThrow(
      /waiting for .*parcels.* to be "sent"/,
    );

    const { pid } = operator;
    await operator.kill();
    const courier = { kind: 'merge', body: { metadata: { annotations: { courier: 'here' } } } } as const;
    await admin.patch(parcel.schema, metadata, courier);
    await operator.restart();
    expect(operator.pid).not.toBe(pid);
    const { status } = await untilState(admin, parcel, metadata, 'sent');
    expect(status).toMatchObject({ sent: 1, operationHistory: [{ result: 'Succeeded' }] });
    expect(operator.log.filter(({ message }) => message === 'operator runs')).toHaveLength(2);
  });

  it('tells why an operator does not start', async () => {
    const none = startOperator({ plugins: [`${PLUGIN}.missing`], cluster });
    await expect(none).rejects.toThrow('plugins cannot be loaded');
  });

  it('has a clock that is moved by hand', async () => {
    const clock = manualClock();
    const began = clock.now();
    const slept = clock.sleep(3_600_000).then(() => clock.now() - began);
    await clock.advance(3_600_000);
    expect(await slept).toBe(3_600_000);
  });
});
