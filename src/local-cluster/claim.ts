/**
 * One control plane per directory. The claim is a file that names the process
 * which runs it; it is taken by link(), which fails if the file exists, and it
 * counts only while that very process lives (a pid alone may be used again).
 */
import { execFile } from 'node:child_process';
import { link, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type PlaneDirectory, readIfPresent, writePrivateFile } from './plane-directory.ts';

export interface Claim {
  readonly pid: number;
  /** When that process started, as the system tells it. */
  readonly processStart: string;
  readonly since: string;
  /** Known once the plane is ready. */
  readonly clusters: readonly { readonly server: string; readonly kubeconfig: string }[];
}

export class AlreadyRunningError extends Error {
  readonly claim: Claim;

  constructor(directory: PlaneDirectory, claim: Claim) {
    const where = claim.clusters.map(({ server }) => server).join(', ') || 'still starting';
    super(
      `a control plane is running in ${directory.path} since ${claim.since} (pid ${claim.pid}): ${where}. ` +
        `Use it with KUBECONFIG=${directory.kubeconfig(1)}, or end it with: taskflow down --data-dir ${directory.path}`,
    );
    this.name = 'AlreadyRunningError';
    this.claim = claim;
  }
}

const run = promisify(execFile);

/** Throws AlreadyRunningError where a living process has the directory. */
export async function claimDirectory(directory: PlaneDirectory): Promise<void> {
  const claim: Claim = {
    pid: process.pid,
    processStart: (await processStart(process.pid)) ?? '',
    since: new Date().toISOString(),
    clusters: [],
  };
  const mine = `${directory.claim()}.${process.pid}`;
  await writeFile(mine, JSON.stringify(claim), { mode: 0o600 });
  try {
    while (!(await linked(mine, directory.claim()))) {
      const holder = await readClaim(directory);
      if (holder) throw new AlreadyRunningError(directory, holder);
      await killLeftovers(directory);
      await rm(directory.claim(), { force: true });
    }
  } finally {
    await rm(mine, { force: true });
  }
}

export async function announceClusters(
  directory: PlaneDirectory,
  clusters: Claim['clusters'],
): Promise<void> {
  const claim = JSON.parse(await readFile(directory.claim(), 'utf8')) as Claim;
  await writePrivateFile(directory.claim(), JSON.stringify({ ...claim, clusters }));
}

export async function releaseClaim(directory: PlaneDirectory): Promise<void> {
  await rm(directory.claim(), { force: true });
}

/** The claim of a living process, if there is one. */
export async function readClaim(directory: PlaneDirectory): Promise<Claim | undefined> {
  const text = await readIfPresent(directory.claim());
  if (text === undefined) return undefined;
  const claim = JSON.parse(text) as Claim;
  return (await isHeld(claim)) ? claim : undefined;
}

/** Whether the process that made the claim still lives. */
export async function isHeld({ pid, processStart: start }: Claim): Promise<boolean> {
  return (await processStart(pid)) === start;
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Programs of a plane whose owner and reaper were both killed. A pid file
 * alone proves nothing: only a process whose command line names this directory is ours.
 */
async function killLeftovers(directory: PlaneDirectory): Promise<void> {
  for (const registry of await readdir(directory.pids()).catch(() => [])) {
    const path = join(directory.pids(), registry);
    for (const pid of (await readdir(path)).filter((name) => /^\d+$/.test(name))) {
      if ((await ps(Number(pid), 'args')).includes(directory.path)) process.kill(-Number(pid), 'SIGKILL');
    }
    await rm(path, { recursive: true, force: true });
  }
}

async function processStart(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // Fields 3 and 22; the second one, the name in brackets, may hold spaces.
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? undefined : rest[18];
  } catch {
    const started = await ps(pid, 'lstart');
    return started === '' ? undefined : started;
  }
}

/** One column of ps, empty where there is no such process. */
async function ps(pid: number, column: 'lstart' | 'args'): Promise<string> {
  try {
    return (await run('ps', ['-o', `${column}=`, '-p', String(pid)])).stdout.trim();
  } catch {
    return '';
  }
}
