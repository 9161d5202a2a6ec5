/**
 * The programs built from source: the way that works wherever Go and a module
 * proxy do. One `go build` for all of them, because they share most of their
 * packages and go keeps every core busy by itself. It takes minutes the first
 * time, so that it says about once a second how far it is.
 */
import { rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fillCache, type Workspace } from './cache.ts';
import { isPackageName, runGo } from './go-command.ts';
import { type FoundPrograms, type Search, type Source, SourceFailedError } from './source.ts';
import { KUBERNETES_VERSION, PROGRAM_NAMES, PROGRAMS } from './versions.ts';

/** The same from `src/` and from `dist/`: both are three levels below the package. */
const MODULE_DIR = join(import.meta.dirname, '..', '..', '..', 'tools', 'kube-binaries');
const PACKAGES = PROGRAM_NAMES.map((name) => PROGRAMS[name].goPackage);
const REPORT_EVERY_MS = 1_000;

export const buildSource: Source = {
  name: 'build',
  onlyLooks: false,
  async find(search: Search): Promise<FoundPrograms> {
    await stat(join(MODULE_DIR, 'go.mod')).catch((error: unknown) => {
      throw new SourceFailedError(`${MODULE_DIR} is missing from this installation`, { cause: error });
    });
    return fillCache(search, (workspace) => buildPrograms(workspace, search));
  },
};

async function buildPrograms(workspace: Workspace, search: Search): Promise<void> {
  const env = goEnvironment(search.env, workspace);
  const packageCount = await countPackages(env, search);
  await compile(workspace, packageCount, env, search);
  for (const name of PROGRAM_NAMES) {
    const { goOutput } = PROGRAMS[name];
    if (goOutput !== name) await rename(join(workspace.programs, goOutput), join(workspace.programs, name));
  }
}

/** Also what fetches the modules, where Go does not have them yet. */
async function countPackages(env: NodeJS.ProcessEnv, search: Search): Promise<number> {
  let packages = 0;
  let modules = 0;
  let latest = '';
  const listing = runGo({
    args: ['list', '-mod=readonly', '-deps', ...PACKAGES],
    cwd: MODULE_DIR,
    env,
    signal: search.signal,
    onStdout: () => packages++,
    onStderr(line) {
      const module = /^go: downloading (?<module>.+)$/.exec(line)?.groups?.['module'];
      if (module === undefined) return;
      modules++;
      latest = module;
    },
  });
  await reportWhile(listing, search, (elapsed) =>
    modules === 0
      ? `reading the list of packages, ${elapsed}`
      : `fetched ${modules} Go modules (${latest}), ${elapsed}`,
  );
  return packages;
}

async function compile(
  { programs }: Workspace,
  packageCount: number,
  env: NodeJS.ProcessEnv,
  search: Search,
): Promise<void> {
  let compiled = 0;
  let latest = '';
  const compiling = runGo({
    args: ['build', '-v', ...buildFlags(), '-o', `${programs}/`, ...PACKAGES],
    cwd: MODULE_DIR,
    env,
    signal: search.signal,
    onStderr(line) {
      if (!isPackageName(line)) return;
      compiled++;
      latest = line;
    },
  });
  // go is silent about packages that its own cache already has: there may be fewer lines than packages.
  await reportWhile(compiling, search, (elapsed) =>
    compiled === 0
      ? `compiling what Go's cache does not have of ${packageCount} packages, ${elapsed}`
      : `compiled ${compiled} of at most ${packageCount} packages (${latest}), ${elapsed}`,
  );
}

function buildFlags(): string[] {
  const [major, minor] = KUBERNETES_VERSION.slice(1).split('.');
  const stamps = Object.entries({ gitVersion: KUBERNETES_VERSION, gitMajor: major, gitMinor: minor }).map(
    ([field, value]) => `-X k8s.io/component-base/version.${field}=${value}`,
  );
  return ['-mod=readonly', '-trimpath', '-buildvcs=false', '-ldflags', `-s -w ${stamps.join(' ')}`];
}

function goEnvironment(env: NodeJS.ProcessEnv, { scratch }: Workspace): NodeJS.ProcessEnv {
  return {
    ...env,
    CGO_ENABLED: '0',
    // Of this machine, even where the user's shell is set up for cross-compiling.
    GOOS: '',
    GOARCH: '',
    // A workspace file in a directory above would replace our pinned versions.
    GOWORK: 'off',
    // Hundreds of megabytes, which must not stay in /tmp if go is killed.
    GOTMPDIR: scratch,
  };
}

/** Tells at the start, every second, and at the end: the elapsed time moves even while go is silent. */
async function reportWhile(
  work: Promise<void>,
  { report }: Search,
  describe: (elapsed: string) => string,
): Promise<void> {
  const startedAt = Date.now();
  const tell = (): void =>
    report({ type: 'progress', source: 'build', message: describe(minutes(Date.now() - startedAt)) });
  tell();
  const timer = setInterval(tell, REPORT_EVERY_MS);
  try {
    await work;
    tell();
  } finally {
    clearInterval(timer);
  }
}

function minutes(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
