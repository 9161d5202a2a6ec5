import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCommand } from '../support/command.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

describe('the package', () => {
  it('works when it is packed and installed elsewhere', async () => {
    await using dir = await temporaryDirectory();
    const packed = await runCommand('npm', ['pack', '--json', '--pack-destination', dir.path]);
    expect(packed).toMatchObject({ exitCode: 0 });
    const [{ filename, files }] = JSON.parse(packed.stdout.slice(packed.stdout.indexOf('['))) as [
      { filename: string; files: { path: string }[] },
    ];
    const paths = files.map(({ path }) => path);
    expect(paths).toContain('tools/kube-binaries/go.mod');
    expect(paths.filter((path) => /^(src|test|demo)\/|\.test\./.test(path))).toEqual([]);

    const inDir = { cwd: dir.path };
    await writeFile(join(dir.path, 'package.json'), '{"name": "user", "type": "module", "private": true}');
    const installed = await runCommand('npm', ['install', '--prefer-offline', `./${filename}`], inDir);
    expect(installed).toMatchObject({ exitCode: 0 });

    const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
    const bin = (name: string): string => join(dir.path, 'node_modules/.bin', name);
    const told = await runCommand(bin('taskflow'), ['version'], inDir);
    expect(told).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`taskflow ${version}`) });
    expect(await runCommand(bin('kubectl-taskflow'), ['doctor'], inDir)).toMatchObject({ exitCode: 0 });

    await writeFile(
      join(dir.path, 'use.js'),
      `import { version } from 'taskflow-operator';
       import { startControlPlane } from 'taskflow-operator/local-cluster';
       await using plane = await startControlPlane({ dir: 'plane', durable: false });
       const { items } = await plane.clusters[0].admin.list({ group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false });
       console.log(version, items[0].metadata.name);`,
    );
    const used = await runCommand(process.execPath, ['use.js'], inDir);
    expect(used).toMatchObject({ exitCode: 0, stdout: `${version} virtual-node\n` });

    // A kind of the user's own, tested with what the package offers for that.
    expect(await runCommand(bin('taskflow'), ['new-kind', 'Rocket'], inDir)).toMatchObject({ exitCode: 0 });
    const tested = await runCommand(process.execPath, ['--test', 'rocket/rocket.test.ts'], inDir);
    expect(tested).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('pass 2') });
  });
});
