/**
 * Stand-ins for the Kubernetes programs, for tests of where they come from:
 * shell scripts that answer the question for their version, a release server
 * that serves them, and a PATH on which nothing else is found.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

const FAKE_ANSWERS: Readonly<Record<string, string>> = {
  etcd: 'etcd Version: 3.6.8',
  'kube-apiserver': 'Kubernetes v1.36.3',
  'kube-controller-manager': 'Kubernetes v1.36.3',
  kubectl: 'Client Version: v1.36.3',
};

/** A directory for one test, with an empty cache and only these commands on the PATH. */
export interface Sandbox extends AsyncDisposable {
  readonly root: string;
  readonly bin: string;
  readonly cacheParent: string;
  readonly cacheEntry: string;
  readonly env: NodeJS.ProcessEnv;
}

export interface ReleaseServer extends AsyncDisposable {
  readonly kubernetesBase: string;
  readonly etcdBase: string;
  readonly paths: readonly string[];
}

export interface ReleaseServerOptions {
  /** Its file does not have the published checksum. */
  readonly corrupt?: string;
  /** Files are served from elsewhere, as the real release hosts do. */
  readonly redirect?: boolean;
  /** The etcd archive is held back until that many have asked for it. */
  readonly holdEtcdUntilAskedFor?: number;
}

const COMMANDS_FOR_SCRIPTS = ['tar', 'gzip', 'cp', 'sleep'];

export async function createSandbox(): Promise<Sandbox> {
  const root = await mkdtemp(join(tmpdir(), 'taskflow-binaries-'));
  const bin = join(root, 'bin');
  await mkdir(bin);
  await Promise.all(COMMANDS_FOR_SCRIPTS.map((name) => symlink(whereIs(name), join(bin, name))));
  const cacheParent = join(root, 'cache', 'taskflow', 'kube');
  return {
    root,
    bin,
    cacheParent,
    cacheEntry: join(cacheParent, 'v1.36.3'),
    env: { PATH: bin, HOME: root, XDG_CACHE_HOME: join(root, 'cache') },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

export async function writeScript(path: string, lines: readonly string[]): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${lines.join('\n')}\n`);
  await chmod(path, 0o755);
}

/** The four programs; `answers` replaces what one says, or leaves it out with `undefined`. */
export async function writePrograms(
  dir: string,
  answers: Readonly<Record<string, string | undefined>> = {},
): Promise<void> {
  await mkdir(dir, { recursive: true });
  const programs = Object.entries({ ...FAKE_ANSWERS, ...answers });
  await Promise.all(
    programs.map(async ([name, answer]) => {
      if (answer !== undefined) await writeScript(join(dir, name), [`echo '${answer}'`]);
    }),
  );
}

/** Serves releases in the layout of the official hosts, for linux/amd64. */
export async function serveReleases(
  sandbox: Sandbox,
  options: ReleaseServerOptions = {},
): Promise<ReleaseServer> {
  const files = await releaseFiles(sandbox, options.corrupt);
  const paths: string[] = [];
  const etcdAsked = gate(options.holdEtcdUntilAskedFor ?? 0);
  const server = createServer((request, response) => {
    void (async () => {
      const path = request.url ?? '';
      paths.push(path);
      if (path.endsWith('.tar.gz')) await etcdAsked();
      if (options.redirect === true && !path.startsWith('/elsewhere')) {
        response.writeHead(302, { location: `/elsewhere${path}` }).end();
        return;
      }
      const file = files.get(path.replace('/elsewhere', ''));
      response.writeHead(file === undefined ? 404 : 200, { 'content-length': file?.length ?? 0 }).end(file);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    kubernetesBase: `${base}/kubernetes`,
    etcdBase: `${base}/etcd`,
    paths,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function releaseFiles({ root }: Sandbox, corrupt: string | undefined): Promise<Map<string, Buffer>> {
  const folder = 'etcd-v3.6.8-linux-amd64';
  const programs = join(root, 'releases', folder);
  await writePrograms(programs);
  const files = new Map<string, Buffer>();
  for (const name of Object.keys(FAKE_ANSWERS).filter((program) => program !== 'etcd')) {
    const content = await readFile(join(programs, name));
    const path = `/kubernetes/v1.36.3/bin/linux/amd64/${name}`;
    files.set(path, name === corrupt ? Buffer.from('#!/bin/sh\n') : content);
    files.set(`${path}.sha256`, Buffer.from(sha256(content)));
  }
  const archive = join(root, 'releases', `${folder}.tar.gz`);
  execFileSync('tar', ['-czf', archive, '-C', join(root, 'releases'), `${folder}/etcd`]);
  const content = await readFile(archive);
  const sums = `${sha256(Buffer.from('other'))}  other.zip\n${sha256(content)}  ${folder}.tar.gz\n`;
  files.set(`/etcd/v3.6.8/${folder}.tar.gz`, corrupt === 'etcd' ? Buffer.from('junk') : content);
  files.set('/etcd/v3.6.8/SHA256SUMS', Buffer.from(sums));
  return files;
}

/** Lets nobody pass before `count` wait; then everybody. */
function gate(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let waiting = 0;
  return async () => {
    waiting++;
    if (waiting >= count) resolve();
    await promise;
  };
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

function whereIs(command: string): string {
  for (const dir of (process.env['PATH'] ?? '').split(delimiter)) {
    try {
      accessSync(join(dir, command), constants.X_OK);
      return join(dir, command);
    } catch {
      // Not in this directory.
    }
  }
  throw new Error(`this test needs the command ${command} on the PATH`);
}
