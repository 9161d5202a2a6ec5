import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { awaitObject } from '../../src/kube/await-object.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import { type ControlPlane, startControlPlane } from '../../src/local-cluster/control-plane.ts';
import widgets, { TICK } from '../fixtures/widget/plugin.ts';
import { widget } from '../fixtures/widget/schema.ts';
import { installOperator, type OperatorAccess } from '../support/install-operator.ts';
import { OperatorProcess } from '../support/operator.ts';
import { type TemporaryDirectory, temporaryDirectory } from '../support/temporary-directory.ts';

const PLUGIN = join(import.meta.dirname, '../fixtures/widget/plugin.ts');
const LEASE_MS = 15_000;
/** A standby looks at least this often, and its own start of work takes a moment. */
const SLACK_MS = 5_000;

describe('two operators', () => {
  let dir: TemporaryDirectory;
  let plane: ControlPlane;
  let access: OperatorAccess;
  const start = (): OperatorProcess => new OperatorProcess({ ...access, plugin: PLUGIN });

  beforeAll(async () => {
    dir = await temporaryDirectory();
    plane = await startControlPlane({ dir: dir.path, durable: false, virtualNode: false });
    access = await installOperator(plane.clusters[0], [widgets]);
  });
  afterAll(async () => {
    await plane.stop();
    await dir[Symbol.asyncDispose]();
  });

  /** Two of them, the first of which leads. */
  async function startTwo(): Promise<[leader: OperatorProcess, standby: OperatorProcess]> {
    const leader = start();
    onTestFinished(() => leader[Symbol.asyncDispose]());
    await leader.untilLogged('operator runs');
    const standby = start();
    onTestFinished(() => standby[Symbol.asyncDispose]());
    await standby.untilLogged('operator waits to lead');
    return [leader, standby];
  }

  const elapsed = async (run: () => Promise<unknown>): Promise<number> => {
    const began = performance.now();
    await run();
    return performance.now() - began;
  };

  it('kill -9 of the leader: the other leads when the lease has run out', async () => {
    const [leader, standby] = await startTwo();
    leader.signal('SIGKILL');
    const took = await elapsed(() => standby.untilLogged('operator leads'));
    expect(took).toBeLessThan(LEASE_MS + SLACK_MS);
    expect(took).toBeGreaterThan(1_000);
  });

  it('SIGTERM to the leader: it exits 0, and the other leads within 2 s', async () => {
    const [leader, standby] = await startTwo();
    const took = await elapsed(async () => {
      leader.signal('SIGTERM');
      await standby.untilLogged('operator leads');
    });
    expect(took).toBeLessThan(2_000);
    expect((await leader.finished).exitCode).toBe(0);
  });

  it('a frozen leader that wakes up after its lease writes nothing and exits 1', async () => {
    const [leader, standby] = await startTwo();
    const { admin } = plane.clusters[0];
    const ref = { name: 'ticking', namespace: 'default' };
    await admin.create(widget, {
      metadata: { ...ref, annotations: { [TICK]: '20' } },
      spec: {},
    } as never);
    const writers: { epoch: number; tick: number }[] = [];
    const reflector = new Reflector({
      client: admin,
      type: widget,
      onChange: ({ object }) => {
        const [, epoch, tick] = /^epoch=(\d+),tick=(\d+)$/.exec(object.status?.selector ?? '') ?? [];
        if (epoch !== undefined) writers.push({ epoch: Number(epoch), tick: Number(tick) });
      },
    }).start();
    await awaitObject(admin, widget, ref, ({ status }) => (status?.selector ?? '').includes('tick='), {
      timeoutMs: 10_000,
      until: 'to be written by the leader',
    });
    const firstEpoch = writers.at(-1)?.epoch ?? 0;

    leader.signal('SIGSTOP');
    await standby.untilLogged('operator leads');
    await awaitObject(
      admin,
      widget,
      ref,
      ({ status }) => !(status?.selector ?? '').includes(`=${firstEpoch},`),
      {
        timeoutMs: 10_000,
        until: 'to be written by the new leader',
      },
    );
    leader.signal('SIGCONT');

    expect((await leader.finished).exitCode).toBe(1);
    await reflector.stop();
    const epochs = writers.map(({ epoch }) => epoch);
    expect(epochs.at(-1)).toBeGreaterThan(firstEpoch);
    expect(epochs).toEqual(epochs.toSorted((a, b) => a - b));
    await admin.delete(widget, ref);
  });
});
