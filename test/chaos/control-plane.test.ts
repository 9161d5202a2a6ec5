import { chmod, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { awaitObject } from '../../src/kube/await-object.ts';
import { configMaps, pods } from '../../src/kube/builtin-resources.ts';
import { objectKey } from '../../src/kube/resource-type.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import { findBinaries } from '../../src/local-cluster/binaries/find-binaries.ts';
import { startControlPlane } from '../../src/local-cluster/control-plane.ts';
import { RunningCommand, TASKFLOW } from '../support/command.ts';
import { runKubectl } from '../support/cluster.ts';
import { expectGone, processesNaming } from '../support/processes.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const SLEEPER = {
  metadata: { name: 'sleeper', namespace: 'default' },
  spec: { containers: [{ name: 'main', image: 'process', command: ['/bin/sleep', '98765'] }] },
};

describe('the local control plane when things die', () => {
  it('kill -9 of the parent takes every program and Pod with it and leaves no file', async () => {
    await using dir = await temporaryDirectory();
    const planeDir = join(dir.path, 'plane');
    await using parent = new RunningCommand(process.execPath, [
      join(import.meta.dirname, 'hold-control-plane.ts'),
      planeDir,
    ]);
    const [, kubeconfig = ''] = await parent.untilPrinted(/ready (.*)\n/);
    const { paths } = await findBinaries();
    await writeFile(
      join(dir.path, 'pod.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'Pod', ...SLEEPER }),
    );
    await runKubectl(paths.kubectl, kubeconfig, ['apply', '-f', join(dir.path, 'pod.json')]);
    await runKubectl(paths.kubectl, kubeconfig, [
      'wait',
      '--for=condition=Ready',
      'pod/sleeper',
      '--timeout=20s',
    ]);
    const programs = [...(await processesNaming(planeDir)), ...(await processesNaming('98765'))].filter(
      (pid) => pid !== parent.child.pid,
    );
    // etcd, API server, controller manager, the reaper, the Pod's process.
    expect(programs.length).toBeGreaterThanOrEqual(5);

    parent.child.kill('SIGKILL');
    await parent.finished;

    await expectGone(programs);
    await vi.waitFor(() => expect(stat(planeDir)).rejects.toThrow('ENOENT'), { timeout: 5_000 });
  });

  it('kill -9 of `taskflow up` does so, too', async () => {
    await using dir = await temporaryDirectory();
    await using up = new RunningCommand(process.execPath, [
      TASKFLOW,
      'up',
      '--data-dir',
      join(dir.path, 'data'),
    ]);
    await up.untilPrinted(/export KUBECONFIG=/);
    const programs = await processesNaming(join(dir.path, 'data'));
    up.child.kill('SIGKILL');
    await up.finished;
    await expectGone(programs);
  });

  it('a program that dies is reported with the end of its log', async () => {
    await using dir = await temporaryDirectory();
    await using plane = await startControlPlane({ dir: dir.path, durable: false, virtualNode: false });
    const { port } = new URL(plane.clusters[0].server);
    const [apiServer = 0] = await processesNaming(`--secure-port=${port}`);
    process.kill(apiServer, 'SIGKILL');
    const failure = await plane.failed;
    expect(failure.message).toContain('kube-apiserver ended with signal SIGKILL');
    expect(failure.message).toContain('kube-apiserver-1.log');
    expect(failure.message.split('\n').length).toBeGreaterThan(5);
  });

  it('a program that cannot start is reported at once, not as a time-out', async () => {
    await using dir = await temporaryDirectory();
    const broken = join(dir.path, 'kube-apiserver');
    await writeFile(broken, '#!/bin/sh\necho "disk is on fire" >&2\nexit 7\n');
    await chmod(broken, 0o755);
    const binaries = await findBinaries();
    const began = performance.now();
    await expect(
      startControlPlane({
        dir: join(dir.path, 'plane'),
        durable: false,
        binaries: { ...binaries, paths: { ...binaries.paths, 'kube-apiserver': broken } },
      }),
    ).rejects.toThrow(/kube-apiserver ended with exit code 7.*disk is on fire/s);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(await processesNaming(dir.path)).toEqual([]);
  });

  it('a cache of objects survives the restart of the API server', async () => {
    await using dir = await temporaryDirectory();
    await using plane = await startControlPlane({ dir: dir.path, durable: false, virtualNode: false });
    const [cluster] = plane.clusters;
    const configMap = (name: string) => ({ metadata: { name, namespace: 'default' } });
    const reflector = new Reflector({
      client: cluster.admin,
      type: configMaps,
      namespace: 'default',
    }).start();
    await reflector.synced;
    await cluster.admin.create(configMaps, configMap('before'));

    await cluster.restartApiServer();
    await cluster.admin.create(configMaps, configMap('after'));
    await cluster.admin.delete(configMaps, { namespace: 'default', name: 'before' });

    const onServer = await cluster.admin.list(configMaps, { namespace: 'default' });
    const expected = onServer.items.map(({ metadata }) => objectKey(metadata)).toSorted();
    await vi.waitFor(
      () =>
        expect([...reflector.values()].map(({ metadata }) => objectKey(metadata)).toSorted()).toEqual(
          expected,
        ),
      { timeout: 20_000 },
    );
    expect(expected).toContain('default/after');
    await reflector.stop();
  });

  it('a Pod runs on while the API server is away', async () => {
    await using dir = await temporaryDirectory();
    await using plane = await startControlPlane({ dir: dir.path, durable: false });
    const [cluster] = plane.clusters;
    await cluster.admin.create(pods, SLEEPER);
    const ready = { timeoutMs: 20_000, until: 'to be Ready' };
    await awaitObject(cluster.admin, pods, SLEEPER.metadata, (pod) => pod.status?.phase === 'Running', ready);
    const before = await processesNaming('98765');

    await cluster.restartApiServer();

    const pod = await cluster.admin.get(pods, SLEEPER.metadata);
    expect(pod.status?.phase).toBe('Running');
    expect(pod.status?.containerStatuses?.[0]?.restartCount).toBe(0);
    expect(await processesNaming('98765')).toEqual(before);
  });
});
