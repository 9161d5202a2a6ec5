/** Every example does what its README says, command by command, under one operator. */
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { kubeconfigYaml } from '../../src/local-cluster/kubeconfig.ts';
import { type RunningOperator, startOperator } from '../../src/testing/index.ts';
import { useCluster } from '../support/cluster.ts';
import { runCommand } from '../support/command.ts';
import { comparable, documentedCommands } from '../support/console-block.ts';
import { type TemporaryDirectory, temporaryDirectory } from '../support/temporary-directory.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const FOLDERS = readdirSync(EXAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

describe('examples', () => {
  const cluster = useCluster();
  const shared = inject('cluster');
  let dir: TemporaryDirectory;
  let operator: RunningOperator | undefined;

  beforeAll(async () => {
    dir = await temporaryDirectory();
    const plugins = FOLDERS.flatMap((folder) =>
      readdirSync(join(EXAMPLES, folder))
        .filter((file) => file.endsWith('.ts'))
        .map((file) => join(EXAMPLES, folder, file)),
    );
    operator = await startOperator({ plugins, cluster: { ...shared, admin: cluster.admin } });
  });
  afterAll(async () => {
    await operator?.stop();
    await dir[Symbol.asyncDispose]();
  });

  /** An environment in which kubectl means a namespace of the example's own. */
  async function environment(folder: string): Promise<NodeJS.ProcessEnv> {
    const KUBECONFIG = join(dir.path, folder);
    const connection = { server: shared.server, ca: shared.ca, clientCertificate: shared.admin };
    const namespace = await cluster.namespace('example');
    await writeFile(KUBECONFIG, kubeconfigYaml({ cluster: 'shared', user: 'admin', namespace, connection }), {
      mode: 0o600,
    });
    return { ...process.env, KUBECONFIG, PATH: `${dirname(shared.kubectl)}:${process.env['PATH']}` };
  }

  it.each(FOLDERS)('%s', async (folder) => {
    const commands = documentedCommands(readFileSync(join(EXAMPLES, folder, 'README.md'), 'utf8'));
    expect(commands.length).toBeGreaterThan(3);
    const env = await environment(folder);
    for (const { command, output } of commands) {
      const { stdout, stderr } = await runCommand('sh', ['-c', command], { env });
      expect(`$ ${command}\n${comparable(stdout + stderr)}`).toBe(`$ ${command}\n${comparable(output)}`);
    }
  });

  it('are all in the list of examples', () => {
    const list = readFileSync(join(EXAMPLES, 'README.md'), 'utf8');
    for (const folder of FOLDERS) expect(list).toContain(`(${folder}/README.md)`);
  });
});
