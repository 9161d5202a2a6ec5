import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCommand, taskflow, TASKFLOW } from '../support/command.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

describe('taskflow on the command line', () => {
  it('--help names every command', async () => {
    const help = await taskflow(['--help']);
    expect(help.exitCode).toBe(0);
    for (const command of ['up', 'down', 'kubectl', 'doctor', 'version'])
      expect(help.stdout).toMatch(new RegExp(`^  ${command} `, 'm'));
  });

  it.each([
    [['upp'], "unknown command 'upp'"],
    [['up', '--clusters', '9'], 'whole number from 1 to 4'],
    [['up', '--frobnicate'], "unknown option '--frobnicate'"],
  ])('%j is a usage error: exit code 2, no stack trace', async (args, message) => {
    const result = await taskflow(args);
    expect(result.exitCode).toBe(2);
    expect(result.stderr).toContain(message);
    expect(result.stderr).not.toMatch(/^\s+at /m);
  });

  it('shows the stack of an error only with --verbose, and colours only on a terminal', async () => {
    await using dir = await temporaryDirectory();
    const fault = ['kubectl', '--data-dir', join(dir.path, 'none'), 'get', 'pods'];
    const brief = await taskflow(fault);
    expect(brief.exitCode).toBe(1);
    expect(brief.stderr).toMatch(/^error: no control plane is running in .*\n$/);
    expect((await taskflow(['--verbose', ...fault])).stderr).toMatch(/^\s+at /m);
  });

  it('doctor tells what is there', async () => {
    const doctor = await taskflow(['doctor']);
    expect(doctor.exitCode).toBe(0);
    expect(doctor.stdout).toMatch(/✔ Node\s+v24/);
    expect(doctor.stdout).toMatch(/Kubernetes programs\s+v1\.36\.3/);
  });

  it('version tells also the version of Kubernetes', async () => {
    expect((await taskflow(['version'])).stdout).toMatch(
      /^taskflow \d+\.\d+\.\d+ \(local Kubernetes v1\.36\.3/,
    );
    expect(JSON.parse((await taskflow(['version', '--json'])).stdout)).toMatchObject({
      kubernetes: 'v1.36.3',
    });
  });

  it('is a kubectl plugin under the name kubectl-taskflow', async () => {
    await using dir = await temporaryDirectory();
    await symlink(TASKFLOW, join(dir.path, 'kubectl-taskflow'));
    const env = { ...process.env, PATH: `${dir.path}:${process.env['PATH']}` };
    const help = await runCommand('kubectl-taskflow', ['--help'], { env });
    expect(help.stdout).toMatch(/^Usage: kubectl taskflow /);
  });
});
