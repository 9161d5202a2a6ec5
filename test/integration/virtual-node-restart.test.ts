/** The virtual node ends and starts again, as when `taskflow up` is stopped and started; on a plane of its own. */
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { awaitDeletion, awaitObject } from '../../src/kube/await-object.ts';
import { type Node, nodes, type Pod, pods } from '../../src/kube/builtin-resources.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import type { ConnectionOptions } from '../../src/kube/connection.ts';
import type { Stored } from '../../src/kube/resource-type.ts';
import { startClusterNode } from '../../src/local-cluster/cluster-node.ts';
import type { Cluster } from '../../src/local-cluster/cluster.ts';
import { type ControlPlane, startControlPlane } from '../../src/local-cluster/control-plane.ts';
import { ProcessKeeper } from '../../src/local-cluster/processes/process-keeper.ts';
import type { VirtualNode } from '../../src/local-cluster/virtual-node/virtual-node.ts';
import { runKubectl } from '../support/cluster.ts';
import { expectGone } from '../support/processes.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../support/temporary-directory.ts';

const TIMEOUT = { timeoutMs: 20_000 };
let directory: TemporaryDirectory;
let plane: ControlPlane;
let cluster: Cluster;
let admin: KubeClient;
let keeper: ProcessKeeper;
let node: VirtualNode;
const errors: unknown[] = [];

async function startNode(): Promise<void> {
  const dir = join(directory.path, 'node');
  node = await startClusterNode(cluster, { keeper, dir, onError: (error) => errors.push(error) });
}

beforeAll(async () => {
  directory = await temporaryDirectory();
  const dir = join(directory.path, 'plane');
  plane = await startControlPlane({ dir, virtualNode: false, durable: false });
  [cluster] = plane.clusters;
  admin = cluster.admin;
  keeper = new ProcessKeeper({ dir: directory.path });
  await startNode();
});

afterAll(async () => {
  await node.stop();
  await keeper.close();
  await plane.stop();
  await directory[Symbol.asyncDispose]();
});

async function createPod(
  name: string,
  spec: Partial<NonNullable<Pod['spec']>>,
  image = 'process',
): Promise<Stored<Pod>> {
  const script = 'echo $$$$; touch up; exec sleep 60';
  const readinessProbe = { exec: { command: ['test', '-e', 'up'] }, periodSeconds: 1 };
  const command = ['sh', '-c', script];
  return admin.create(pods, {
    metadata: { namespace: 'default', name },
    spec: { containers: [{ name: 'main', image, command, readinessProbe }], ...spec },
  });
}

function podUntil(name: string, until: string, satisfied: (pod: Pod) => boolean): Promise<Stored<Pod>> {
  return awaitObject(admin, pods, { namespace: 'default', name }, satisfied, { ...TIMEOUT, until });
}

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;
const kubectl = async (...args: string[]): Promise<string> => {
  const { stdout, stderr } = await runKubectl(plane.binaries.paths.kubectl, cluster.kubeconfig, args);
  return stdout + stderr;
};

describe('the node', () => {
  it('says what it is', async () => {
    const found = await admin.get(nodes, { name: 'virtual-node' });
    expect(found.metadata.labels).toMatchObject({ 'virtual-node.taskflow.dev/stand-in': 'true' });
    expect(found.status?.nodeInfo?.osImage).toContain('stand-in for a kubelet');
    expect(readyOf(found)).toBe('True');
  });

  it('answers the API server alone', async () => {
    const own = { keys: cluster.adminKeys, ca: cluster.ca };
    expect(await ask(own)).toEqual({ code: 200, text: 'ok' });
    const stranger = await cluster.userConnection('somebody');
    expect((await ask({ keys: stranger.clientCertificate, ca: cluster.ca })).code).toBe(403);
    await expect(ask({ keys: undefined, ca: cluster.ca })).rejects.toThrow(/certificate|hang up|ECONNRESET/);
  });

  it('comes back to its Pods as after a reboot', async () => {
    await Promise.all([
      createPod('always', { restartPolicy: 'Always' }),
      createPod('never', { restartPolicy: 'Never' }),
      createPod('pretended', {}, 'nginx'),
    ]);
    const before = await Promise.all(
      ['always', 'never', 'pretended'].map((name) => podUntil(name, 'to be Ready', isReady)),
    );
    const pids = await Promise.all(
      ['always', 'never'].map(async (name) => Number.parseInt(await kubectl('logs', name), 10)),
    );

    const stopped = performance.now();
    await node.stop();
    expect(performance.now() - stopped).toBeLessThan(2000);
    await expectGone(pids);
    await startNode();

    const lost = await podUntil('never', 'to fail', ({ status }) => status?.phase === 'Failed');
    expect(lost.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: 137,
      reason: 'ContainerStatusUnknown',
    });
    const restarted = await podUntil(
      'always',
      'to be Ready again',
      (pod) => isReady(pod) && pod.status?.containerStatuses?.[0]?.restartCount === 1,
    );
    expect(restarted.status?.podIP).toBe(before[0]?.status?.podIP);
    expect(Number.parseInt(await kubectl('logs', 'always', '--previous'), 10)).toBe(pids[0]);
    const pretended = await admin.get(pods, { namespace: 'default', name: 'pretended' });
    expect(isReady(pretended)).toBe(true);
    expect(pretended.status?.containerStatuses?.[0]?.restartCount).toBe(0);
    expect(Number.parseInt(await kubectl('logs', 'never'), 10)).toBe(pids[1]);
  });

  it('finds the end of a Pod that was deleted while it was away', async () => {
    await createPod('going', {});
    await podUntil('going', 'to be Ready', isReady);
    await node.stop();
    await admin.delete(pods, { namespace: 'default', name: 'going' });
    await startNode();
    const gone = awaitDeletion(admin, pods, { namespace: 'default', name: 'going' }, TIMEOUT);
    await expect(gone).resolves.toBeUndefined();
  });

  it('takes no new Pods while it is cordoned, but those that tolerate it', async () => {
    const cordon = (unschedulable: boolean | null): Promise<unknown> =>
      admin.patch(nodes, { name: 'virtual-node' }, { kind: 'merge', body: { spec: { unschedulable } } });
    await cordon(true);
    await awaitObject(admin, nodes, { name: 'virtual-node' }, ({ spec }) => hasTaint(spec, 'unschedulable'), {
      ...TIMEOUT,
      until: 'to be tainted',
    });
    await createPod('ordinary', {}, 'nginx');
    const tolerations = [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }];
    await createPod('tolerant', { tolerations }, 'nginx');
    await podUntil('tolerant', 'to be Ready', isReady);
    const waiting = await admin.get(pods, { namespace: 'default', name: 'ordinary' });
    expect(waiting.spec?.nodeName).toBeUndefined();
    await cordon(null);
    await podUntil('ordinary', 'to be Ready', isReady);
  });

  it('needs no more rights than it has', () => {
    expect(errors).toEqual([]);
  });
});

function hasTaint(spec: Node['spec'], name: string): boolean {
  return spec?.taints?.some(({ key }) => key === `node.kubernetes.io/${name}`) ?? false;
}

function readyOf({ status }: Node): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status;
}

function ask({
  keys,
  ca,
}: {
  keys: ConnectionOptions['clientCertificate'];
  ca: string;
}): Promise<{ code: number | undefined; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ code: number | undefined; text: string }>();
  const options = { host: '127.0.0.1', port: node.kubeletPort, path: '/healthz', ca, agent: false };
  request({ ...options, ...(keys && { cert: keys.certPem, key: keys.keyPem }) }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    response.on('end', () => resolve({ code: response.statusCode, text }));
  })
    .on('error', reject)
    .end();
  return promise;
}
