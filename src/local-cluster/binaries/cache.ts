/**
 * The cache of programs: one directory per version, complete or absent.
 *
 * Programs are made in a workspace beside the entry, verified there, and
 * published by one rename. Nobody locks: of several processes that make the
 * same entry at once, the first rename wins, and the others use its entry. An
 * entry that does not run is replaced only when its successor is ready, and
 * looked at again just before, so that nobody throws away a repaired one.
 * Workspaces carry host and pid, so that those of the dead can be removed.
 */
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir, hostname } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { type FoundPrograms, reasonOf, type Search, type Source, SourceFailedError } from './source.ts';
import { verifyPrograms } from './verify.ts';
import { KUBERNETES_VERSION } from './versions.ts';

/** Where programs are made before they are published. */
export interface Workspace {
  /** Becomes the cache entry: the four programs and nothing else. */
  readonly programs: string;
  /** Goes away with the workspace. */
  readonly scratch: string;
}

const WORKSPACE_NAME = /^v[\d.]+\.tmp-(?<host>.+)-(?<pid>\d+)-[^-]+$/;
/** No fetch or build takes this long; covers hosts that are gone and pids that were given again. */
const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000;
const PUBLISH_ATTEMPTS = 5;

export const cacheSource: Source = {
  name: 'cache',
  onlyLooks: true,
  async find({ env, signal }: Search): Promise<FoundPrograms> {
    const dir = cacheEntry(env);
    if (!(await exists(dir))) throw new SourceFailedError(`nothing in ${dir} yet`);
    return { dir, version: await verifyPrograms(dir, { versions: 'pinned', signal }) };
  },
};

function cacheEntry(env: NodeJS.ProcessEnv): string {
  const configured = env['XDG_CACHE_HOME'];
  // The XDG specification wants relative values ignored.
  const root =
    configured !== undefined && isAbsolute(configured)
      ? configured
      : join(env['HOME'] || homedir(), '.cache');
  return join(root, 'taskflow', 'kube', KUBERNETES_VERSION);
}

/** Makes the entry with `fill`, or takes the one that another process finished first. */
export async function fillCache(
  { env, signal }: Search,
  fill: (workspace: Workspace) => Promise<void>,
): Promise<FoundPrograms> {
  const dir = cacheEntry(env);
  const root = await openWorkspaceRoot(dir);
  try {
    const workspace = { programs: join(root, 'programs'), scratch: join(root, 'scratch') };
    await Promise.all([mkdir(workspace.programs), mkdir(workspace.scratch)]);
    await fill(workspace);
    const version = await verifyPrograms(workspace.programs, { versions: 'pinned', signal });
    await publish(workspace, dir, signal);
    return { dir, version };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function openWorkspaceRoot(entry: string): Promise<string> {
  const parent = dirname(entry);
  try {
    await mkdir(parent, { recursive: true });
    await removeLeftovers(parent);
    return await mkdtemp(join(parent, `${KUBERNETES_VERSION}.tmp-${hostname()}-${process.pid}-`));
  } catch (error) {
    throw new SourceFailedError(
      `cannot write the cache (${reasonOf(error)}); XDG_CACHE_HOME chooses another place`,
      { cause: error },
    );
  }
}

async function publish({ programs, scratch }: Workspace, entry: string, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; attempt <= PUBLISH_ATTEMPTS; attempt++) {
    signal.throwIfAborted();
    if (await renameUnlessTaken(programs, entry)) return;
    if (await isGoodEntry(entry, signal)) return;
    // Another process may have moved it away already: then the next rename succeeds.
    await rename(entry, join(scratch, `broken-${attempt}`)).catch(ignoreAbsent);
  }
  throw new SourceFailedError(`${entry} is broken and comes back each time it is moved away`);
}

async function renameUnlessTaken(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    // ENOTDIR: something that is not a directory has the name of the entry.
    if (hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOTDIR')) return false;
    throw error;
  }
}

async function isGoodEntry(entry: string, signal: AbortSignal): Promise<boolean> {
  try {
    await verifyPrograms(entry, { versions: 'pinned', signal });
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

async function removeLeftovers(parent: string): Promise<void> {
  const names = await readdir(parent);
  const leftovers = await Promise.all(
    names.map(async (name) => ((await isLeftover(parent, name)) ? join(parent, name) : undefined)),
  );
  for (const path of leftovers) {
    // Housekeeping: a leftover of another user that cannot be removed must not stop us.
    if (path !== undefined) await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function isLeftover(parent: string, name: string): Promise<boolean> {
  const owner = WORKSPACE_NAME.exec(name)?.groups;
  if (!owner) return false;
  // Pids mean something on their own host only; a home directory may be shared.
  if (owner['host'] === hostname() && !isAlive(Number(owner['pid']))) return true;
  const stats = await stat(join(parent, name)).catch(ignoreAbsent);
  return stats !== undefined && Date.now() - stats.mtimeMs > ABANDONED_AFTER_MS;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return hasCode(error, 'EPERM');
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(ignoreAbsent)) !== undefined;
}

function ignoreAbsent(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT')) throw error;
}

function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
