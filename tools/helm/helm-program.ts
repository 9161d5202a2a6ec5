/** Helm, to check the chart with: built once from its pinned Go module, then taken from the cache. */
import { access, constants, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { messageOf } from '../../src/kube/thrown.ts';
import { runGo } from '../../src/local-cluster/binaries/go-command.ts';

const MODULE_DIR = import.meta.dirname;
const PACKAGE = 'helm.sh/helm/v4/cmd/helm';

/** The path of the program. Building it takes minutes on two cores. */
export async function helmProgram(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const version = await pinnedVersion();
  const program = join(cacheRoot(env), 'taskflow', 'helm', version, 'helm');
  if (await isExecutable(program)) return program;
  try {
    await build(program, env);
  } catch (error) {
    throw new Error(
      `The chart is checked with Helm ${version}, which is not in ${dirname(program)} and could not be built: ` +
        `${messageOf(error)}. Or put the program there yourself.`,
      { cause: error },
    );
  }
  return program;
}

async function pinnedVersion(): Promise<string> {
  const text = await readFile(join(MODULE_DIR, 'go.mod'), 'utf8');
  const version = /helm\.sh\/helm\/v4 (?<version>v\S+)/.exec(text)?.groups?.['version'];
  if (version === undefined) throw new Error(`${MODULE_DIR}/go.mod names no version of helm.sh/helm/v4`);
  return version;
}

/** Whoever finishes first or last: a rename puts a whole program there, never a part of one. */
async function build(program: string, env: NodeJS.ProcessEnv): Promise<void> {
  await mkdir(dirname(program), { recursive: true });
  const workspace = await mkdtemp(join(dirname(program), 'build-'));
  try {
    await runGo({
      args: [
        'build',
        '-mod=readonly',
        '-trimpath',
        '-buildvcs=false',
        '-ldflags=-s -w',
        '-o',
        workspace,
        PACKAGE,
      ],
      cwd: MODULE_DIR,
      // As src/local-cluster/binaries/build.ts has them, so that Go's cache serves both.
      env: { ...env, CGO_ENABLED: '0', GOOS: '', GOARCH: '', GOWORK: 'off', GOTMPDIR: workspace },
      signal: new AbortController().signal,
    });
    await rename(join(workspace, 'helm'), program);
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}

function cacheRoot(env: NodeJS.ProcessEnv): string {
  const configured = env['XDG_CACHE_HOME'];
  return configured !== undefined && isAbsolute(configured)
    ? configured
    : join(env['HOME'] || homedir(), '.cache');
}

function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
