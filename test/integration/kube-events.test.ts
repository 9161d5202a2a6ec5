import { beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { configMaps, events, namespaces } from '../../src/kube/builtin-resources.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { openConnection } from '../../src/kube/connection.ts';
import { EventRecorder, type EventRecorderOptions } from '../../src/kube/event-recorder.ts';
import type { KubeObject } from '../../src/kube/resource-type.ts';
import { useCluster } from '../support/cluster.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { createServiceAccount, requestToken } from '../support/service-account.ts';

const cluster = useCluster();
const { admin } = cluster;
let namespace: string;
beforeAll(async () => {
  namespace = await cluster.namespace('events');
});

function record(options: Partial<EventRecorderOptions> = {}): EventRecorder {
  const recorder = new EventRecorder({
    client: admin,
    component: 'taskflow/test',
    instance: 'replica-1',
    ...options,
  });
  onTestFinished(() => recorder.stop());
  return recorder;
}

const subject = (name: string) => admin.create(configMaps, { metadata: { name, namespace } });
const eventsOf = async (name: string) =>
  (await admin.list(events, { namespace, fieldSelector: `involvedObject.name=${name}` })).items;

describe('events', () => {
  it('are shown by kubectl describe, counted and with their latest time', async () => {
    const recorder = record();
    const object = await subject('described');
    recorder.event(object, 'Normal', 'FlowStarted', 'flow "create" started');
    await recorder.flush();
    for (let n = 0; n < 3; n++) {
      recorder.event(object, 'Warning', 'TaskFailed', 'task "wait" failed: password=hunter2 was refused');
      await recorder.flush();
    }
    const { stdout } = await cluster.kubectl('describe', 'configmap', 'described', '-n', namespace);
    expect(stdout).toMatch(/Normal\s+FlowStarted\s+\S+\s+taskflow\/test\s+flow "create" started/);
    expect(stdout).toMatch(
      /Warning\s+TaskFailed\s+\S+ \(x3 over \S+\)\s+taskflow\/test\s+task "wait" failed: password=\*\*\* was refused/,
    );
    const listed = await cluster.kubectl('get', 'events', '-n', namespace);
    expect(listed.stdout).toContain('configmap/described');
    expect(await eventsOf('described')).toHaveLength(2);
  });

  it('a burst is merged into few writes', async () => {
    let writes = 0;
    const recorder = record({ observer: { written: () => writes++ } });
    const object = await subject('burst');
    for (let n = 0; n < 20; n++) recorder.event(object, 'Normal', 'Again', 'and again');
    await recorder.flush();
    expect(writes).toBeLessThan(4);
    expect(await eventsOf('burst')).toMatchObject([{ count: 20, message: 'and again' }]);
  });

  it('ten messages alike are folded, and the folded one shows the latest', async () => {
    const recorder = record();
    const object = await subject('folded');
    for (let n = 1; n <= 14; n++) recorder.event(object, 'Warning', 'Retry', `try ${n}`);
    await recorder.flush();
    const all = await eventsOf('folded');
    expect(all).toHaveLength(10);
    expect(all.find(({ message }) => message?.startsWith('(combined'))).toMatchObject({
      count: 5,
      message: '(combined from similar events): try 14',
    });
  });

  it('an object that talks too much is heard 25 times', async () => {
    const dropped: string[] = [];
    const recorder = record({ observer: { dropped: (why) => dropped.push(why) } });
    const object = await subject('chatty');
    for (let n = 0; n < 30; n++) recorder.event(object, 'Normal', `Reason${n}`, 'hello');
    await recorder.flush();
    expect(await eventsOf('chatty')).toHaveLength(25);
    expect(dropped).toEqual(Array.from({ length: 5 }, () => 'limited'));
  });

  it('of cluster-wide objects are in the namespace default', async () => {
    const recorder = record();
    recorder.event(await admin.get(namespaces, { name: namespace }), 'Normal', 'Seen', 'a namespace');
    await recorder.flush();
    const { stdout } = await cluster.kubectl('describe', 'namespace', namespace);
    // kubectl does not show events of namespaces; the list does.
    expect(stdout).toContain(namespace);
    const fieldSelector = `involvedObject.name=${namespace},involvedObject.kind=Namespace`;
    expect((await admin.list(events, { namespace: 'default', fieldSelector })).items).toHaveLength(1);
  });

  it('long messages are cut to 1024 bytes, between characters', async () => {
    const recorder = record();
    recorder.event(await subject('long'), 'Normal', 'Long', 'ü'.repeat(1_000));
    await recorder.flush();
    const [event] = await eventsOf('long');
    expect(Buffer.byteLength(event?.message ?? '')).toBeLessThanOrEqual(1024);
    expect(event?.message).toMatch(/^ü+…$/);
  });

  it('names that are none for events are changed, not lost', async () => {
    const recorder = record();
    const role: KubeObject = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'System:x_', namespace },
    };
    recorder.event(role, 'Normal', 'Odd', 'odd name');
    await recorder.flush();
    expect(await eventsOf('System:x_')).toHaveLength(1);
  });

  it('an event that the server has forgotten is made anew', async () => {
    const recorder = record();
    const object = await subject('forgotten');
    recorder.event(object, 'Normal', 'Once', 'once');
    await recorder.flush();
    const [event] = await eventsOf('forgotten');
    await admin.delete(events, { namespace, name: event?.metadata.name ?? '' });
    recorder.event(object, 'Normal', 'Once', 'once');
    await recorder.flush();
    expect(await eventsOf('forgotten')).toMatchObject([{ count: 2 }]);
  });

  it('recording never throws and never waits; what cannot be written is reported and dropped', async () => {
    const errors: unknown[] = [];
    const dropped: string[] = [];
    const recorder = record({
      capacity: 5,
      onError: (error) => errors.push(error),
      observer: { dropped: (why) => dropped.push(why) },
    });
    recorder.event({ metadata: {} }, 'Normal', 'Nameless', 'of nobody');
    expect((errors[0] as Error).message).toContain('needs an object with apiVersion, kind and name');
    const nowhere = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace: 'no-such-namespace' },
    };
    recorder.event(nowhere, 'Normal', 'Lost', 'in a namespace that is not there');
    for (let n = 0; n < 9; n++) recorder.event(nowhere, 'Normal', `Lost${n}`, 'too many');
    // One is on its way, five wait.
    expect(dropped.filter((why) => why === 'full')).toHaveLength(4);
    await recorder.flush();
    expect(dropped.filter((why) => why === 'failed')).toHaveLength(6);
    expect((errors.at(-1) as Error).message).toContain('namespaces "no-such-namespace" not found');
  });

  it('survives a server that is away for a moment', async () => {
    const account = { namespace, name: 'recorder' };
    await createServiceAccount(admin, account, { clusterRole: 'cluster-admin' });
    await using proxy = await startFaultProxy({ target: inject('cluster') });
    await using connection = openConnection({
      server: proxy.server,
      ca: proxy.ca,
      token: await requestToken(admin, account),
    });
    const recorder = record({ client: new KubeClient(connection), random: () => 0.01 });
    const object = await subject('patient');
    proxy.inject({ kind: 'status', code: 503, times: 1 });
    proxy.inject({ kind: 'reset', when: 'after', times: 1 });
    recorder.event(object, 'Normal', 'Patient', 'waits');
    await recorder.flush();
    await vi.waitFor(async () => expect(await eventsOf('patient')).toHaveLength(1));
  });
});
