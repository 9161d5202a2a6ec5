import { existsSync, readFileSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  createSandbox,
  type Sandbox,
  writePrograms,
  writeScript,
} from '../../../test/support/fake-kube-programs.ts';
import { type BinaryEvent, findBinaries, type KubeBinaries } from './find-binaries.ts';

let sandbox: Sandbox;
let programs: string;
let messages: string[];

beforeEach(async () => {
  sandbox = await createSandbox();
  programs = join(sandbox.root, 'what-go-builds');
  messages = [];
  await writePrograms(programs);
});

afterEach(async () => {
  await sandbox[Symbol.asyncDispose]();
});

/** A go command that lists three packages and runs `build` when asked to build. */
async function installGo(build: readonly string[]): Promise<void> {
  await writeScript(join(sandbox.bin, 'go'), [
    `echo "$*" >> '${join(sandbox.root, 'go-calls')}'`,
    'if [ "$1" = list ]; then',
    '  echo "go: downloading k8s.io/api v0.36.3" >&2',
    '  echo example.org/one; echo example.org/two; echo example.org/three',
    '  exit 0',
    'fi',
    ...build,
  ]);
}

/** What a go command does that succeeds: one program per package, named as Go does. */
const BUILD_ALL = [
  'while [ "$1" != -o ]; do shift; done',
  'for name in kube-apiserver kube-controller-manager kubectl; do cp "$PROGRAMS/$name" "$2$name"; done',
  'cp "$PROGRAMS/etcd" "$2server"',
];

async function findByBuild(
  options: { signal?: AbortSignal; onMessage?: (message: string) => void } = {},
): Promise<KubeBinaries> {
  const report = (event: BinaryEvent): void => {
    if (event.type !== 'progress') return;
    messages.push(event.message);
    options.onMessage?.(event.message);
  };
  return findBinaries({
    env: { ...sandbox.env, PROGRAMS: programs, GATE: join(sandbox.root, 'gate') },
    platform: 'darwin',
    arch: 'arm64',
    report,
    ...(options.signal && { signal: options.signal }),
  });
}

test('one go build makes all programs, and says how far it is', async () => {
  await installGo(['echo example.org/one >&2', 'echo example.org/two >&2', ...BUILD_ALL]);

  expect(await findByBuild()).toMatchObject({ source: 'build', version: 'v1.36.3', dir: sandbox.cacheEntry });

  expect(messages).toContain('reading the list of packages, 0:00');
  expect(messages).toContain('fetched 1 Go modules (k8s.io/api v0.36.3), 0:00');
  expect(messages.at(-1)).toMatch(/^compiled 2 of at most 3 packages \(example\.org\/two\), 0:0\d$/);
  expect(await readdir(sandbox.cacheParent)).toEqual(['v1.36.3']);
  const [list, build, ...others] = (await readFile(join(sandbox.root, 'go-calls'), 'utf8'))
    .trim()
    .split('\n');
  expect(list).toMatch(/^list -mod=readonly -deps .*k8s\.io\/kubernetes\/cmd\/kube-apiserver/);
  expect(build).toMatch(
    /^build -v -mod=readonly -trimpath .*gitVersion=v1\.36\.3 .*gitMajor=1 .*gitMinor=36 /,
  );
  expect(others).toEqual([]);
});

test('the elapsed time moves while go is silent', async () => {
  await installGo(['until [ -e "$GATE" ]; do sleep 0.02; done', ...BUILD_ALL]);
  const found = findByBuild({
    onMessage(message) {
      if (/^compiling .*, 0:01$/.test(message)) void writeFile(join(sandbox.root, 'gate'), '');
    },
  });
  expect(await found).toMatchObject({ source: 'build' });
  expect(messages).toContain("compiling what Go's cache does not have of 3 packages, 0:01");
});

test('a failed build shows the last lines of what go said', async () => {
  await installGo(['echo example.org/one >&2', 'echo "one.go:1:1: no such thing" >&2', 'exit 1']);
  await expect(findByBuild()).rejects.toThrow(
    'build: go build failed (exit code 1): one.go:1:1: no such thing',
  );
  expect(await readdir(sandbox.cacheParent)).toEqual([]);
});

test('a build that makes something else is not put into the cache', async () => {
  await writePrograms(programs, { etcd: 'etcd Version: 3.5.0' });
  await installGo(BUILD_ALL);
  await expect(findByBuild()).rejects.toThrow(
    /build: .*etcd answers "etcd Version: 3\.5\.0" instead of v3\.6\.8/,
  );
  expect(existsSync(sandbox.cacheEntry)).toBe(false);
});

test('an abort ends go with everything that it started, and leaves nothing', async () => {
  const pidFile = join(sandbox.root, 'compiler-pid');
  await installGo([
    'echo example.org/started >&2',
    `/bin/sh -c 'echo $$ > "${pidFile}"; exec sleep 600'`,
    'exit 1',
  ]);
  const abort = new AbortController();
  const found = findByBuild({
    signal: abort.signal,
    onMessage(message) {
      if (message.includes('example.org/started')) abort.abort(new Error('the user pressed Ctrl-C'));
    },
  });

  await expect(found).rejects.toThrow('the user pressed Ctrl-C');

  const compiler = Number(await readFile(pidFile, 'utf8'));
  await expect.poll(() => isRunning(compiler)).toBe(false);
  expect(await readdir(sandbox.cacheParent)).toEqual([]);
});

/** A killed orphan is a zombie until init takes note of it; on Linux that can be told apart. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (error) {
    return error instanceof Error && error.message.includes('ENOENT') && process.platform !== 'linux';
  }
}
