import { once } from 'node:events';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  createSandbox,
  type Sandbox,
  serveReleases,
  writePrograms,
  writeScript,
} from '../../../test/support/fake-kube-programs.ts';
import {
  BinariesNotFoundError,
  type BinaryEvent,
  findBinaries,
  type FindBinariesOptions,
  type KubeBinaries,
  lookForBinaries,
} from './find-binaries.ts';

let sandbox: Sandbox;
let events: BinaryEvent[];

beforeEach(async () => {
  sandbox = await createSandbox();
  events = [];
});

afterEach(async () => {
  await sandbox[Symbol.asyncDispose]();
});

/** A search of the sandbox: no network, no go, unless the test says otherwise. */
async function find(options: FindBinariesOptions = {}): Promise<KubeBinaries> {
  return findBinaries(search(options));
}

function search(options: FindBinariesOptions = {}): FindBinariesOptions {
  const closed = 'http://127.0.0.1:1';
  return {
    platform: 'linux',
    arch: 'x64',
    report: (event) => events.push(event),
    download: { kubernetesBase: closed, etcdBase: closed },
    ...options,
    env: { ...sandbox.env, ...options.env },
  };
}

function reasons(): Record<string, string> {
  const failed = events.filter((event) => event.type === 'source-failed');
  return Object.fromEntries(failed.map(({ source, reason }) => [source, reason]));
}

describe('the order of sources', () => {
  test('a directory named by TASKFLOW_ASSETS comes first, whatever its version', async () => {
    const mine = join(sandbox.root, 'mine');
    const theirs = join(sandbox.root, 'theirs');
    await writePrograms(mine, { 'kube-apiserver': 'Kubernetes v1.34.1' });
    await writePrograms(theirs);
    await writePrograms(sandbox.cacheEntry);

    const found = await find({ env: { TASKFLOW_ASSETS: mine, KUBEBUILDER_ASSETS: theirs } });

    expect(found).toMatchObject({ source: 'TASKFLOW_ASSETS', dir: mine, version: 'v1.34.1' });
    expect(found.paths.kubectl).toBe(join(mine, 'kubectl'));
    expect(events).toEqual([{ type: 'found', source: 'TASKFLOW_ASSETS', dir: mine }]);
  });

  test('an envtest directory lacks the controller manager: that is said, and the cache is next', async () => {
    const envtest = join(sandbox.root, 'envtest');
    await writePrograms(envtest, { 'kube-controller-manager': undefined });
    await writePrograms(sandbox.cacheEntry);

    const found = await find({ env: { KUBEBUILDER_ASSETS: envtest } });

    expect(found).toMatchObject({ source: 'cache', version: 'v1.36.3', dir: sandbox.cacheEntry });
    expect(reasons()).toEqual({ KUBEBUILDER_ASSETS: `no executable kube-controller-manager in ${envtest}` });
  });

  test('without XDG_CACHE_HOME the cache is below the home directory', async () => {
    await writePrograms(join(sandbox.root, '.cache', 'taskflow', 'kube', 'v1.36.3'));
    const found = await find({ env: { XDG_CACHE_HOME: '' } });
    expect(found.dir).toBe(join(sandbox.root, '.cache', 'taskflow', 'kube', 'v1.36.3'));
  });

  test('looking neither fetches nor builds', async () => {
    await using releases = await serveReleases(sandbox);
    expect(await lookForBinaries(search({ download: releases }))).toBeUndefined();
    expect(releases.paths).toEqual([]);
    await writePrograms(sandbox.cacheEntry);
    expect(await lookForBinaries(search())).toMatchObject({ source: 'cache' });
  });

  test('when nothing works the error names every source and what to install', async () => {
    const error = await find().catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(BinariesNotFoundError);
    const { message } = error as BinariesNotFoundError;
    expect(message).toContain('TASKFLOW_ASSETS: not set');
    expect(message).toContain('KUBEBUILDER_ASSETS: not set');
    expect(message).toContain(`cache: nothing in ${sandbox.cacheEntry} yet`);
    expect(message).toMatch(/download: cannot reach http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/);
    expect(message).toContain('build: there is no go command on the PATH');
    expect(message).toMatch(/install Go 1\.26.*network access.*TASKFLOW_ASSETS/s);
    expect(await readdir(sandbox.cacheParent)).toEqual([]);
  });
});

describe('download', () => {
  test('fetches, checks and caches, and the next search finds the cache', async () => {
    await using releases = await serveReleases(sandbox, { redirect: true });

    expect(await find({ download: releases })).toMatchObject({
      source: 'download',
      version: 'v1.36.3',
      dir: sandbox.cacheEntry,
    });
    expect(await readdir(sandbox.cacheParent)).toEqual(['v1.36.3']);
    expect((await readdir(sandbox.cacheEntry)).toSorted()).toEqual([
      'etcd',
      'kube-apiserver',
      'kube-controller-manager',
      'kubectl',
    ]);
    expect(events).toContainEqual({
      type: 'progress',
      source: 'download',
      message: 'kube-apiserver 0 of 0 MB',
    });
    expect(await find()).toMatchObject({ source: 'cache' });
  });

  test.each(['kubectl', 'etcd'])(
    'refuses %s with another checksum than the published one',
    async (corrupt) => {
      await using releases = await serveReleases(sandbox, { corrupt });
      await expect(find({ download: releases })).rejects.toThrow(BinariesNotFoundError);
      expect(reasons()['download']).toMatch(
        new RegExp(`${corrupt}.* does not match its checksum: published \\w{64}, received \\w{64}$`),
      );
      expect(await readdir(sandbox.cacheParent)).toEqual([]);
    },
  );

  test('a file that does not exist is named', async () => {
    await using releases = await serveReleases(sandbox);
    const download = { ...releases, kubernetesBase: `${releases.kubernetesBase}/none` };
    await expect(find({ download })).rejects.toThrow(BinariesNotFoundError);
    expect(reasons()['download']).toMatch(/\/none\/v1\.36\.3\/bin\/linux\/amd64\/.* answers HTTP 404$/);
  });

  describe('from a server that accepts and says nothing', () => {
    let silent: Server;
    let base: string;
    let accepted: Socket[];

    beforeEach(async () => {
      accepted = [];
      silent = createServer((socket) => accepted.push(socket.on('error', () => undefined)));
      silent.listen(0, '127.0.0.1');
      await once(silent, 'listening');
      base = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    });

    afterEach(async () => {
      for (const socket of accepted) socket.destroy();
      silent.close();
      await once(silent, 'close');
    });

    test('gives up after the connect time-out', async () => {
      const download = { kubernetesBase: base, etcdBase: base, connectTimeoutMs: 100 };
      await expect(find({ download })).rejects.toThrow(BinariesNotFoundError);
      expect(reasons()['download']).toMatch(/^cannot reach https:\/\/127\.0\.0\.1:\d+: .*timeout/i);
    });

    test('an abort does not wait for the connect time-out', async () => {
      const abort = new AbortController();
      silent.once('connection', () => abort.abort(new Error('the user pressed Ctrl-C')));
      const download = { kubernetesBase: base, etcdBase: base, connectTimeoutMs: 60_000 };
      await expect(find({ download, signal: abort.signal })).rejects.toThrow('the user pressed Ctrl-C');
      expect(await readdir(sandbox.cacheParent)).toEqual([]);
    });
  });

  test('on macOS says that the build is the way, without asking the network', async () => {
    await using releases = await serveReleases(sandbox);
    await expect(find({ platform: 'darwin', download: releases })).rejects.toThrow(BinariesNotFoundError);
    expect(reasons()['download']).toBe(
      'Kubernetes publishes no server programs for macOS; building them with Go is the way there',
    );
    expect(releases.paths).toEqual([]);
  });

  test('names a processor without releases', async () => {
    await expect(find({ arch: 'riscv64' })).rejects.toThrow(BinariesNotFoundError);
    expect(reasons()['download']).toBe('Kubernetes publishes no server programs for linux on riscv64');
  });
});

describe('the cache', () => {
  test('two searches at once make one good entry and leave nothing else', async () => {
    await using releases = await serveReleases(sandbox, { holdEtcdUntilAskedFor: 2 });

    const both = await Promise.all([find({ download: releases }), find({ download: releases })]);

    expect(both.map(({ dir }) => dir)).toEqual([sandbox.cacheEntry, sandbox.cacheEntry]);
    expect(await readdir(sandbox.cacheParent)).toEqual(['v1.36.3']);
    expect(await lookForBinaries(search())).toMatchObject({ source: 'cache' });
  });

  test.each([
    ['does not run', 'exit 7', /kubectl does not run: exit code 7$/],
    [
      'is of another version',
      'echo Client Version: v1.36.30',
      /answers "Client Version: v1\.36\.30" instead/,
    ],
  ])('an entry that %s is replaced', async (_, line, reason) => {
    await using releases = await serveReleases(sandbox);
    await writePrograms(sandbox.cacheEntry);
    await writeScript(join(sandbox.cacheEntry, 'kubectl'), [line]);

    expect(await find({ download: releases })).toMatchObject({ source: 'download' });

    expect(reasons()['cache']).toMatch(reason);
    expect(await readdir(sandbox.cacheParent)).toEqual(['v1.36.3']);
    expect(await find()).toMatchObject({ source: 'cache' });
  });

  test('a broken entry stays where no replacement can be had', async () => {
    await writePrograms(sandbox.cacheEntry, { etcd: undefined });
    await expect(find()).rejects.toThrow(/cache: no executable etcd/);
    expect(await readdir(sandbox.cacheParent)).toEqual(['v1.36.3']);
  });

  test('what a dead process left is removed, what a living one works on is kept', async () => {
    await using releases = await serveReleases(sandbox);
    const dead = `v1.36.3.tmp-${hostname()}-${spawnSync('/bin/sh', ['-c', 'exit 0']).pid}-aaaaaa`;
    const alive = `v1.36.3.tmp-${hostname()}-${process.pid}-bbbbbb`;
    const elsewhere = `v1.36.3.tmp-another-host-1-cccccc`;
    for (const name of [dead, alive, elsewhere]) {
      await mkdir(join(sandbox.cacheParent, name, 'programs'), { recursive: true });
    }
    await find({ download: releases });
    expect((await readdir(sandbox.cacheParent)).toSorted()).toEqual(['v1.36.3', elsewhere, alive].toSorted());
  });

  test('a cache that cannot be written says how to choose another', async () => {
    await writeFile(join(sandbox.root, 'cache'), 'a file where the directory should be');
    await expect(find()).rejects.toThrow(/build: cannot write the cache .* XDG_CACHE_HOME/);
    await rm(join(sandbox.root, 'cache'));
  });
});
