import { beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { leases } from '../../src/kube/builtin-resources.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { openConnection } from '../../src/kube/connection.ts';
import { NotFound } from '../../src/kube/errors.ts';
import {
  electionIdentity,
  EPOCH_ANNOTATION,
  LeaderElector,
  type LeaderElectorOptions,
} from '../../src/kube/leader-election.ts';
import { useCluster } from '../support/cluster.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { manualClock } from '../support/manual-clock.ts';
import { createServiceAccount, requestToken } from '../support/service-account.ts';

const cluster = useCluster();
const { admin } = cluster;
const FAST = { leaseDurationMs: 2_000, renewDeadlineMs: 1_200, retryPeriodMs: 200 };
let namespace: string;
beforeAll(async () => {
  namespace = await cluster.namespace('election');
});

function elect(name: string, options: Partial<LeaderElectorOptions> = {}): LeaderElector {
  const identity = electionIdentity(options.identity ?? 'test');
  const elector = new LeaderElector({ client: admin, namespace, name, timing: FAST, ...options, identity });
  onTestFinished(() => elector.stop());
  elector.start();
  return elector;
}

const lease = (name: string) => admin.get(leases, { namespace, name });
const settledNow = (promise: Promise<unknown>): Promise<boolean> =>
  Promise.race([promise.then(() => true), Promise.resolve(false)]);

describe('leader election', () => {
  it('the first one leads; a second one stands by, and leads at once when the first stops', async () => {
    const first = elect('handover');
    await first.leading;
    expect(first.isLeader()).toBe(true);
    expect(first.epoch).toBeGreaterThan(Date.now() - 60_000);
    const taken = await lease('handover');
    expect(taken).toMatchObject({
      metadata: { annotations: { [EPOCH_ANNOTATION]: String(first.epoch) } },
      spec: { holderIdentity: first.holder, leaseDurationSeconds: 2, leaseTransitions: 0 },
    });

    const second = elect('handover');
    await vi.waitFor(() => expect(second.holder).toBe(first.holder));
    expect(second.isLeader()).toBe(false);
    // Renewals change times and nothing else.
    await vi.waitFor(async () =>
      expect((await lease('handover')).metadata.resourceVersion).not.toBe(taken.metadata.resourceVersion),
    );
    expect((await lease('handover')).metadata.annotations?.[EPOCH_ANNOTATION]).toBe(String(first.epoch));

    await first.stop();
    expect(first.isLeader()).toBe(false);
    const released = performance.now();
    await second.leading;
    // Not by its end, but by its release.
    expect(performance.now() - released).toBeLessThan(FAST.renewDeadlineMs);
    expect(second.epoch).toBeGreaterThan(first.epoch);
    expect(await lease('handover')).toMatchObject({
      metadata: { annotations: { [EPOCH_ANNOTATION]: String(second.epoch) } },
      spec: { holderIdentity: second.holder, leaseTransitions: 1 },
    });
    expect(await settledNow(first.lost)).toBe(false);
  });

  it('a leader that falls silent is followed after the lease’s duration; it knows before that', async () => {
    const clock = manualClock();
    const frozen = elect('frozen', { clock, timing: {} });
    await frozen.leading;
    // Its timers do not run any more, as in a process that was stopped.
    const second = elect('frozen', {
      timing: { leaseDurationMs: 2_000, renewDeadlineMs: 1_200, retryPeriodMs: 200 },
    });
    const spec = { ...(await lease('frozen')).spec, leaseDurationSeconds: 2 };
    await admin.patch(leases, { namespace, name: 'frozen' }, { kind: 'merge', body: { spec } });
    await second.leading;
    expect(second.epoch).toBeGreaterThan(frozen.epoch);

    expect(frozen.isLeader()).toBe(true);
    const waking = clock.advance(10_000);
    await waking;
    expect(frozen.isLeader()).toBe(false);
    expect((await frozen.lost).message).toMatch(/lost the lease .*\/frozen: /);
    expect((await lease('frozen')).spec?.holderIdentity).toBe(second.holder);
  });

  it('time that passed while nothing ran counts at the very next look', async () => {
    let jump = 0;
    const clock = manualClock();
    const elector = elect('jump', {
      timing: {},
      clock: { ...clock, monotonic: () => clock.monotonic() + jump },
    });
    await elector.leading;
    expect(elector.isLeader()).toBe(true);
    jump = 10_000;
    expect(elector.isLeader()).toBe(false);
  });

  it('a lease that somebody else took is lost', async () => {
    const elector = elect('stolen');
    await elector.leading;
    const spec = { holderIdentity: 'thief' };
    await admin.patch(leases, { namespace, name: 'stolen' }, { kind: 'merge', body: { spec } });
    expect((await elector.lost).message).toContain('"thief" holds it now');
    expect(elector.isLeader()).toBe(false);
    await elector.stop();
    expect((await lease('stolen')).spec?.holderIdentity).toBe('thief');
  });

  it('a note on the lease by somebody else is no loss', async () => {
    let slowPaths = 0;
    const elector = elect('noted', { observer: { slowPath: () => slowPaths++ } });
    await elector.leading;
    const body = { metadata: { annotations: { note: 'hello' } } };
    await admin.patch(leases, { namespace, name: 'noted' }, { kind: 'merge', body });
    await vi.waitFor(() => expect(slowPaths).toBe(1));
    const { resourceVersion } = (await lease('noted')).metadata;
    await vi.waitFor(async () =>
      expect((await lease('noted')).metadata.resourceVersion).not.toBe(resourceVersion),
    );
    expect(elector.isLeader()).toBe(true);
    expect((await lease('noted')).metadata.annotations).toMatchObject({ note: 'hello' });
  });

  it('many at once: exactly one leads, and epochs grow from term to term', async () => {
    const electors = Array.from({ length: 5 }, () => elect('crowd'));
    const epochs: number[] = [];
    const waiting = new Set(electors);
    while (waiting.size > 0) {
      const leader = await Promise.race([...waiting].map((elector) => elector.leading.then(() => elector)));
      expect(electors.filter((elector) => elector.isLeader())).toEqual([leader]);
      epochs.push(leader.epoch);
      waiting.delete(leader);
      await leader.stop();
    }
    expect(epochs).toEqual(epochs.toSorted((a, b) => a - b));
    expect(new Set(epochs).size).toBe(5);
    expect((await lease('crowd')).spec?.holderIdentity).toBeUndefined();
  });

  it('an epoch is greater than the last one even if the clock went back', async () => {
    const clock = manualClock(Date.UTC(2020, 0, 1));
    const future = Date.UTC(2040, 0, 1);
    await admin.create(leases, {
      metadata: { name: 'past', namespace, annotations: { [EPOCH_ANNOTATION]: String(future) } },
    });
    const elector = elect('past', { clock, timing: {} });
    await elector.leading;
    expect(elector.epoch).toBe(future + 1);
  });

  it('a leader whose API server does not answer gives up at the renew deadline', async () => {
    const account = { namespace, name: 'elector' };
    await createServiceAccount(admin, account, { clusterRole: 'cluster-admin' });
    await using proxy = await startFaultProxy({ target: inject('cluster') });
    await using connection = openConnection({
      server: proxy.server,
      ca: proxy.ca,
      token: await requestToken(admin, account),
    });
    const elector = elect('unreachable', { client: new KubeClient(connection) });
    await elector.leading;
    proxy.pause();
    const began = performance.now();
    await elector.lost;
    expect(performance.now() - began).toBeLessThan(FAST.renewDeadlineMs + 500);
    proxy.resume();
  });

  it('an answer that was lost does not stop a candidate', async () => {
    const account = { namespace, name: 'unheard' };
    await createServiceAccount(admin, account, { clusterRole: 'cluster-admin' });
    await using proxy = await startFaultProxy({ target: inject('cluster') });
    await using connection = openConnection({
      server: proxy.server,
      ca: proxy.ca,
      token: await requestToken(admin, account),
    });
    proxy.inject({ kind: 'reset', when: 'after', method: ['POST', 'PUT'], path: /leases/, times: 1 });
    const elector = elect('unheard', { client: new KubeClient(connection) });
    await elector.leading;
    expect((await lease('unheard')).metadata.annotations?.[EPOCH_ANNOTATION]).toBe(String(elector.epoch));
  });

  it('stopped before it leads, it leaves nothing', async () => {
    const elector = new LeaderElector({
      client: admin,
      namespace,
      name: 'never',
      identity: 'x',
      timing: FAST,
    });
    await elector.stop();
    await expect(lease('never')).rejects.toThrow(NotFound);
  });

  it('refuses timing that cannot work', () => {
    const timing = { leaseDurationMs: 1_000, renewDeadlineMs: 1_000 };
    expect(() => new LeaderElector({ client: admin, namespace, name: 'x', identity: 'x', timing })).toThrow(
      'lease duration > renew deadline > retry period',
    );
  });
});
