/** What a control plane keeps on disk, and where. Private to its user, since keys lie in it. */
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export class PlaneDirectory {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  readonly etcdData = (): string => join(this.path, 'etcd');
  readonly logs = (): string => join(this.path, 'logs');
  readonly log = (program: string): string => join(this.logs(), `${program}.log`);
  readonly pids = (): string => join(this.path, 'run');
  readonly claim = (): string => join(this.path, 'running.json');
  readonly ports = (): string => join(this.path, 'ports.json');
  readonly pki = (owner: string, file: string): string => join(this.path, 'pki', owner, file);
  readonly node = (index: number): string => join(this.path, 'nodes', String(index));
  /** The admin's; the first cluster's has no number, so that the common case is short. */
  readonly kubeconfig = (index: number): string =>
    join(this.path, index === 1 ? 'kubeconfig' : `kubeconfig-${index}`);
  readonly userKubeconfig = (index: number, user: string): string =>
    join(this.path, 'users', `cluster-${index}`, `${user.replaceAll(/[^\w.@-]/g, '_')}.kubeconfig`);

  async prepare(): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    await chmod(this.path, 0o700);
    await Promise.all([this.logs(), this.pids()].map((dir) => mkdir(dir, { recursive: true })));
  }

  /** Forgets an earlier run. The claim is ours by now, and whoever started us may be writing to the logs. */
  async clear(): Promise<void> {
    const kept = new Set([this.claim(), this.logs()]);
    const old = (await readdir(this.path)).map((name) => join(this.path, name));
    await Promise.all(
      old.filter((path) => !kept.has(path)).map((path) => rm(path, { recursive: true, force: true })),
    );
    await this.prepare();
  }
}

/** Whole or not at all: the next start must never find half a key. */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const unfinished = `${path}.${process.pid}.tmp`;
  await writeFile(unfinished, content, { mode: 0o600 });
  await rename(unfinished, path);
}

export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
