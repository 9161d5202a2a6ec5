/** What this machine has for running taskflow; what `taskflow doctor` tells. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { lookForBinaries } from '../local-cluster/binaries/find-binaries.ts';
import { KUBERNETES_VERSION } from '../local-cluster/binaries/versions.ts';
import { paint, print, table } from './terminal.ts';

interface Finding {
  readonly state: 'ok' | 'optional' | 'missing';
  readonly found: string;
  readonly advice?: string;
}

interface Check {
  readonly name: string;
  readonly look: () => Promise<Finding>;
}

const run = promisify(execFile);
const NODE_FLOOR = [24, 11] as const;
const GO_FLOOR = [1, 26] as const;

const CHECKS: readonly Check[] = [
  { name: 'Node', look: async () => nodeFinding(process.versions.node) },
  { name: 'Kubernetes programs', look: kubernetesPrograms },
  { name: 'Go', look: go },
  {
    name: 'kubectl',
    look: () =>
      optionalProgram(
        'kubectl',
        ['version', '--client'],
        /v\d+\.\d+\.\d+/,
        'taskflow kubectl needs none of its own',
      ),
  },
  {
    name: 'terraform',
    look: () =>
      optionalProgram(
        'terraform',
        ['version'],
        /v\d+\.\d+\.\d+/,
        'install Terraform or OpenTofu to use IaC runs',
      ),
  },
  {
    name: 'git',
    look: () => optionalProgram('git', ['--version'], /\d+\.\d+\.\d+/, 'install git to use IaC sources'),
  },
  {
    name: 'Java',
    look: () =>
      optionalProgram('java', ['-version'], /"?\d+\.\d+\.\d+/, 'install a JDK 17 to run Kafka in tests'),
  },
];

const MARK = {
  ok: paint('green', '✔'),
  optional: paint('yellow', '–'),
  missing: paint('red', '✘'),
};

export async function examine(): Promise<void> {
  const findings = await Promise.all(CHECKS.map(async ({ name, look }) => ({ name, ...(await look()) })));
  const rows = table(findings.map(({ name, found, advice = '' }) => [name, found, advice])).split('\n');
  findings.forEach(({ state }, at) => print(`${MARK[state]} ${rows[at]}`));
  const missing = findings.filter(({ state }) => state === 'missing').map(({ name }) => name);
  if (missing.length === 0) return print('\nReady: try `taskflow up`.');
  print(`\nNot ready: ${missing.join(', ')}.`);
  process.exitCode = 1;
}

export function nodeFinding(found: string): Finding {
  return isAtLeast(found, NODE_FLOOR)
    ? { state: 'ok', found: `v${found}` }
    : { state: 'missing', found: `v${found}`, advice: `install Node ${NODE_FLOOR.join('.')} or later` };
}

/** Without programs at hand there are two ways to them: a download, which we do not try here, and Go. */
async function kubernetesPrograms(): Promise<Finding> {
  const binaries = await lookForBinaries();
  if (binaries) return { state: 'ok', found: `${binaries.version} in ${binaries.dir}` };
  return {
    state: 'optional',
    found: 'not yet',
    advice: `the first start downloads ${KUBERNETES_VERSION}, or builds it with Go in about eight minutes`,
  };
}

async function go(): Promise<Finding> {
  const found = await versionOf('go', ['version'], /\d+\.\d+(\.\d+)?/);
  if (found !== undefined && isAtLeast(found, GO_FLOOR)) return { state: 'ok', found };
  return {
    state: 'optional',
    found: found ?? 'not found',
    advice: `Go ${GO_FLOOR.join('.')} builds the Kubernetes programs where they cannot be downloaded`,
  };
}

async function optionalProgram(
  command: string,
  args: string[],
  pattern: RegExp,
  without: string,
): Promise<Finding> {
  const found = await versionOf(command, args, pattern);
  return found === undefined
    ? { state: 'optional', found: 'not found', advice: without }
    : { state: 'ok', found };
}

async function versionOf(command: string, args: string[], pattern: RegExp): Promise<string | undefined> {
  try {
    const { stdout, stderr } = await run(command, args, { timeout: 10_000 });
    return pattern.exec(stdout + stderr)?.[0].replace('"', '') ?? 'unknown version';
  } catch {
    return undefined;
  }
}

export function isAtLeast(found: string, floor: readonly number[]): boolean {
  const parts = found.split('.').map(Number);
  for (const [at, wanted] of floor.entries()) {
    const have = parts[at] ?? 0;
    if (have !== wanted) return have > wanted;
  }
  return true;
}
