import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RunningCommand, taskflow, TASKFLOW } from '../support/command.ts';
import { expectGone, processesNaming } from '../support/processes.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const inDir = (dir: string, ...args: string[]): string[] => [...args, '--data-dir', dir];

describe('taskflow up', () => {
  it('runs until Ctrl-C, prints the line to copy last, and tells a second `up` where it is', async () => {
    await using dir = await temporaryDirectory();
    await using up = new RunningCommand(process.execPath, [TASKFLOW, ...inDir(dir.path, 'up')]);
    const [, kubeconfig = ''] = await up.untilPrinted(/^export KUBECONFIG=(.*)\n$/m);
    expect(kubeconfig).toBe(join(dir.path, 'kubeconfig'));
    expect((await stat(kubeconfig)).mode & 0o077).toBe(0);

    const nodes = await taskflow(['kubectl', '--data-dir', dir.path, 'get', 'nodes', '--no-headers']);
    expect(nodes.stdout).toMatch(/^virtual-node\s+Ready\s/);

    const second = await taskflow(inDir(dir.path, 'up'));
    expect(second.exitCode).toBe(1);
    expect(second.stderr).toContain(`a control plane is running in ${dir.path}`);
    expect(second.stderr).toContain('https://127.0.0.1:');
    expect(second.stderr).not.toMatch(/^\s+at /m);

    const programs = await processesNaming(dir.path);
    const began = performance.now();
    up.child.kill('SIGINT');
    const ended = await up.finished;
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(ended.exitCode).toBe(0);
    await expectGone(programs);
  });

  it('keeps its state with --data-dir through stop and start, in the background', async () => {
    await using dir = await temporaryDirectory();
    const first = await taskflow(inDir(dir.path, 'up', '--detach'));
    expect(first).toMatchObject({ exitCode: 0 });
    expect(first.stdout.trimEnd().split('\n').at(-1)).toBe(`export KUBECONFIG=${dir.path}/kubeconfig`);
    const kubectl = (...args: string[]) => taskflow(['kubectl', '--data-dir', dir.path, ...args]);
    expect(await kubectl('create', 'configmap', 'kept', '--from-literal=answer=42')).toMatchObject({
      exitCode: 0,
    });
    const server = await kubectl('config', 'view', '-o', 'jsonpath={.clusters[0].cluster.server}');

    expect(await taskflow(inDir(dir.path, 'down'))).toMatchObject({ exitCode: 0 });
    expect(await processesNaming(dir.path)).toEqual([]);
    expect(await kubectl('get', 'ns')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('start one with `taskflow up`'),
    });

    expect(await taskflow(inDir(dir.path, 'up', '--detach'))).toMatchObject({ exitCode: 0 });
    const kept = await kubectl('get', 'configmap', 'kept', '-o', 'jsonpath={.data.answer}');
    expect(kept).toMatchObject({ exitCode: 0, stdout: '42' });
    expect((await kubectl('config', 'view', '-o', 'jsonpath={.clusters[0].cluster.server}')).stdout).toBe(
      server.stdout,
    );
    expect(await taskflow(inDir(dir.path, 'down'))).toMatchObject({ exitCode: 0 });
    expect(await taskflow(inDir(dir.path, 'down'))).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('no control plane is running'),
    });
  });

  it('gives each cluster a kubeconfig, and an admin of one is nobody in the other', async () => {
    await using dir = await temporaryDirectory();
    expect(await taskflow(inDir(dir.path, 'up', '--detach', '--clusters', '2'))).toMatchObject({
      exitCode: 0,
    });
    const kubectl = (...args: string[]) => taskflow(['kubectl', '--data-dir', dir.path, ...args]);
    await kubectl('create', 'namespace', 'only-in-one');
    const inSecond = await kubectl('--cluster', '2', 'get', 'namespaces', '-o', 'name');
    expect(inSecond.stdout).toContain('namespace/default');
    expect(inSecond.stdout).not.toContain('only-in-one');
    const serverOf = async (cluster: string) =>
      (
        await taskflow([
          'kubectl',
          '--data-dir',
          dir.path,
          '--cluster',
          cluster,
          'config',
          'view',
          '-o',
          'jsonpath={.clusters[0].cluster.server}',
        ])
      ).stdout;
    const stranger = await kubectl(
      '--server',
      await serverOf('2'),
      '--insecure-skip-tls-verify',
      'get',
      'namespaces',
    );
    expect(stranger.stderr).toMatch(/must be logged in|Unauthorized/);
    expect((await kubectl('--cluster', '3', 'get', 'ns')).stderr).toContain('there is no cluster 3');
    expect(await taskflow(inDir(dir.path, 'down'))).toMatchObject({ exitCode: 0 });
  });

  it('installs kinds and runs the operator on them, also after a restart', async () => {
    await using dir = await temporaryDirectory();
    const kubectl = (...args: string[]) => taskflow(['kubectl', '--data-dir', dir.path, ...args]);
    const up = inDir(dir.path, 'up', '--detach', '--plugin', './test/fixtures/widget/plugin.ts');
    const ready = (name: string) =>
      kubectl('wait', '--for=jsonpath={.status.status}=ready', `widget/${name}`, '--timeout=20s');
    const create = async (name: string) => {
      const file = join(dir.path, `${name}.yaml`);
      await writeFile(
        file,
        `{apiVersion: test.taskflow.dev/v1alpha1, kind: Widget, metadata: {name: ${name}}, spec: {}}`,
      );
      return kubectl('create', '-f', file);
    };
    expect(await taskflow(up)).toMatchObject({ exitCode: 0 });
    expect(await create('first')).toMatchObject({ exitCode: 0 });
    expect(await ready('first')).toMatchObject({ exitCode: 0 });
    expect(await taskflow(inDir(dir.path, 'down'))).toMatchObject({ exitCode: 0 });

    expect(await taskflow(up)).toMatchObject({ exitCode: 0 });
    expect(await create('second')).toMatchObject({ exitCode: 0 });
    expect(await ready('second')).toMatchObject({ exitCode: 0 });
    expect(await taskflow(inDir(dir.path, 'down'))).toMatchObject({ exitCode: 0 });
    expect(await processesNaming(dir.path)).toEqual([]);
  });

  it('with --no-operator installs kinds that nobody reconciles', async () => {
    await using dir = await temporaryDirectory();
    const plugin = ['--plugin', './test/fixtures/widget/plugin.ts'];
    expect(await taskflow(inDir(dir.path, 'up', '--detach', '--no-operator', ...plugin))).toMatchObject({
      exitCode: 0,
    });
    const explained = await taskflow(['kubectl', '--data-dir', dir.path, 'explain', 'widget.spec.size']);
    expect(explained.stdout).toContain('How big it is.');
    expect(await processesNaming(`${dir.path}/users`)).toHaveLength(1);
    expect(await taskflow(inDir(dir.path, 'down'))).toMatchObject({ exitCode: 0 });
  });

  it('stopped while it starts, it leaves nothing behind', async () => {
    await using dir = await temporaryDirectory();
    await using up = new RunningCommand(process.execPath, [TASKFLOW, ...inDir(dir.path, 'up')]);
    await up.untilPrinted(/etcd ready/);
    up.child.kill('SIGTERM');
    const ended = await up.finished;
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toContain('stopped before it was ready');
    expect(await processesNaming(dir.path)).toEqual([]);
  });
});
