import { Command } from 'commander';
import { loadAll } from 'js-yaml';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { KubeObject } from '../../kube/resource-type.ts';
import { addInstallCommand } from '../commands/install.ts';

async function installed(...args: string[]): Promise<string> {
  const written: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  addInstallCommand(program);
  program.commands.forEach((command) => command.exitOverride().configureOutput({ writeErr: () => {} }));
  await program.parseAsync(['install', ...args], { from: 'user' });
  return written.join('');
}

describe('taskflow install', () => {
  afterEach(() => vi.restoreAllMocks());

  it('--output yaml prints what would be applied, without a cluster', async () => {
    const where = ['--namespace', 'ops', '--namespaces', 'a, b'];
    const text = await installed('-o', 'yaml', ...where, '--image', 'mine:1', '--replicas', '3');
    const objects = loadAll(text) as (KubeObject & { spec?: Record<string, unknown> })[];
    const deployment = objects.find(({ kind }) => kind === 'Deployment');
    expect(deployment?.metadata).toMatchObject({ name: 'taskflow-operator', namespace: 'ops' });
    expect(deployment?.spec).toMatchObject({
      replicas: 3,
      template: { spec: { containers: [{ image: 'mine:1' }] } },
    });
    const served = objects.filter(({ kind, metadata }) => kind === 'Role' && metadata?.namespace !== 'ops');
    expect(served.map(({ metadata }) => metadata?.namespace)).toEqual(['a', 'b']);
  });

  it.each([
    [['--replicas', 'two'], 'whole number'],
    [['--namespaces', 'a,,b'], 'separated by commas'],
    [['--output', 'xml'], 'yaml'],
    [['--systems', 'nothing-of-the-sort', '-o', 'yaml'], 'there is no system "nothing-of-the-sort"'],
    [['--kubeconfig', '/no/such/kubeconfig'], '/no/such/kubeconfig'],
  ])('%j is refused', async (args, reason) => {
    await expect(installed(...args)).rejects.toThrow(reason);
  });
});
