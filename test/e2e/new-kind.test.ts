import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCommand, taskflow } from '../support/command.ts';
import { type TemporaryDirectory, temporaryDirectory } from '../support/temporary-directory.ts';

const BY_NAME = join(import.meta.dirname, '../support/package-by-name.ts');

async function scaffold(dir: TemporaryDirectory, ...args: string[]): Promise<string> {
  expect(await taskflow(['new-kind', ...args], { cwd: dir.path })).toMatchObject({ exitCode: 0 });
  return dir.path;
}

describe('taskflow new-kind', () => {
  it('writes a kind whose own test passes', async () => {
    await using dir = await temporaryDirectory();
    const cwd = join(await scaffold(dir, 'BackupPolicy', '--group', 'ops.example.com'), 'backup-policy');
    const tested = await runCommand(process.execPath, ['--import', BY_NAME, '--test'], { cwd });
    expect(tested.stdout).toContain('pass 2');
    expect(tested).toMatchObject({ exitCode: 0 });
  });

  it('writes a kind that taskflow up runs', async () => {
    await using dir = await temporaryDirectory();
    const cwd = await scaffold(dir, 'Rocket', '--dir', '.');
    const inPlane = ['--data-dir', join(cwd, 'cluster')];
    const kubectl = (...args: string[]) => taskflow(['kubectl', ...inPlane, ...args], { cwd });
    try {
      const up = await taskflow(['up', '--detach', ...inPlane, '--plugin', './rocket.ts'], { cwd });
      expect(up).toMatchObject({ exitCode: 0 });
      expect(await kubectl('apply', '-f', 'rocket.yaml')).toMatchObject({ exitCode: 0 });
      expect(
        await kubectl('wait', 'rocket/my-rocket', '--for=condition=Ready', '--timeout=60s'),
      ).toMatchObject({ exitCode: 0 });
      const message = await kubectl(
        'get',
        'configmap',
        'my-rocket-message',
        '-o',
        'jsonpath={.data.message}',
      );
      expect(message.stdout).toBe('hello');
    } finally {
      await taskflow(['down', ...inPlane], { cwd });
    }
  });

  it('overwrites nothing', async () => {
    await using dir = await temporaryDirectory();
    const cwd = await scaffold(dir, 'Rocket', '--dir', '.');
    const before = await readFile(join(cwd, 'rocket.ts'), 'utf8');
    const again = await taskflow(['new-kind', 'Rocket', '--dir', '.', '--group', 'b.example.com'], { cwd });
    expect(again.exitCode).toBe(1);
    expect(again.stderr).toContain('nothing was written, since these exist: rocket.ts, rocket.test.ts');
    expect(await readFile(join(cwd, 'rocket.ts'), 'utf8')).toBe(before);
  });

  it.each([
    [['rocket'], 'no name for a kind'],
    [['Rocket', '--group', 'example'], 'no API group'],
  ])('refuses %s', async (args, message) => {
    await using dir = await temporaryDirectory();
    const refused = await taskflow(['new-kind', ...args], { cwd: dir.path });
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(message) });
  });
});

describe('taskflow flows', () => {
  const plugins = ['01-hello-flow/greeting.ts', '05-extend-a-flow/phrasebook.ts']
    .map((file) => `./examples/${file}`)
    .join(',');

  it('lists flows with what plugins have inserted', async () => {
    const { stdout } = await taskflow(['flows', '--plugin', plugins, '-o', 'json']);
    expect(JSON.parse(stdout)).toMatchObject([
      { kind: 'Greeting', flow: 'greet', steps: ['say hello', 'translate', 'wait for answer'] },
      { kind: 'Phrasebook', flow: 'read phrasebook', from: ['new'], to: ['ready'] },
    ]);
    const one = await taskflow(['flows', 'hi', '--plugin', plugins]);
    expect(one.stdout.trimEnd().split('\n')).toHaveLength(2);
    expect(one.stdout).toMatch(/greeting +Greeting +greet +new → running/);
  });

  it('tells what is wrong', async () => {
    const extension = plugins.split(',')[1] ?? '';
    const { exitCode, stderr } = await taskflow(['flows', '--plugin', extension]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('there is no flow "greet"');
    const unknown = await taskflow(['flows', 'greting', '--plugin', plugins]);
    expect(unknown.stderr).toContain('did you mean Greeting?');
  });
});
