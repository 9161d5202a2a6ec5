import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { temporaryDirectory } from '../../test/support/temporary-directory.ts';
import { connectionFromKubeconfig, inClusterConnection } from './kubeconfig.ts';

const CA = '-----BEGIN CERTIFICATE-----\nca\n-----END CERTIFICATE-----\n';
const base64 = (text: string): string => Buffer.from(text).toString('base64');

interface Entry {
  readonly name: string;
  readonly server?: string;
  readonly cluster?: object;
  readonly user?: object;
  readonly namespace?: string;
}

/** A context, its cluster and its user, all of the same name. */
async function writeKubeconfig(file: string, entries: readonly Entry[], current?: string): Promise<string> {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: entries.map(({ name, server = `https://${name}.example:6443`, cluster }) => ({
      name,
      cluster: { server, 'certificate-authority-data': base64(CA), ...cluster },
    })),
    users: entries.map(({ name, user = {} }) => ({ name, user })),
    contexts: entries.map(({ name, namespace }) => ({
      name,
      context: { cluster: name, user: name, namespace },
    })),
    'current-context': current ?? entries[0]?.name,
  };
  await writeFile(file, dump(config, { skipInvalid: true }));
  return file;
}

describe('a kubeconfig', () => {
  it('gives server, authority, namespace and a token', async () => {
    await using dir = await temporaryDirectory();
    const path = await writeKubeconfig(join(dir.path, 'config'), [
      { name: 'a', user: { token: 'abc' }, namespace: 'team' },
    ]);
    const access = await connectionFromKubeconfig({ path, env: {} });
    expect(access).toMatchObject({
      server: 'https://a.example:6443',
      ca: CA,
      namespace: 'team',
      source: path,
    });
    expect(await access.credentials?.identity()).toMatchObject({ headers: { authorization: 'Bearer abc' } });
  });

  it('gives client certificates, in the file or beside it', async () => {
    await using dir = await temporaryDirectory();
    await writeFile(join(dir.path, 'key.pem'), 'KEY');
    const user = { 'client-certificate-data': base64('CERT'), 'client-key': 'key.pem' };
    const path = await writeKubeconfig(join(dir.path, 'config'), [{ name: 'a', user }]);
    const access = await connectionFromKubeconfig({ path, env: {} });
    expect(await access.credentials?.identity()).toEqual({
      headers: {},
      clientCertificate: { certPem: 'CERT', keyPem: 'KEY' },
    });
  });

  it('gives user and password, impersonation, TLS name, proxy and no verification', async () => {
    await using dir = await temporaryDirectory();
    const path = await writeKubeconfig(join(dir.path, 'config'), [
      {
        name: 'a',
        cluster: { 'tls-server-name': 'kube', 'proxy-url': 'http://proxy:3128' },
        user: { username: 'u', password: 'p', as: 'jane', 'as-groups': ['dev'], 'as-uid': '7' },
      },
      { name: 'b', cluster: { 'insecure-skip-tls-verify': true, 'certificate-authority-data': undefined } },
    ]);
    const access = await connectionFromKubeconfig({ path, env: {} });
    expect(access).toMatchObject({
      tlsServerName: 'kube',
      proxyUrl: 'http://proxy:3128',
      impersonate: { user: 'jane', groups: ['dev'], uid: '7' },
    });
    expect(await access.credentials?.identity()).toMatchObject({
      headers: { authorization: `Basic ${base64('u:p')}` },
    });
    const other = await connectionFromKubeconfig({ path, context: 'b', env: {} });
    expect(other).toMatchObject({ insecureSkipTlsVerify: true, ca: '' });
  });

  it('names the contexts there are when the wanted one is not', async () => {
    await using dir = await temporaryDirectory();
    const path = await writeKubeconfig(join(dir.path, 'config'), [{ name: 'a' }, { name: 'b' }]);
    await expect(connectionFromKubeconfig({ path, context: 'c', env: {} })).rejects.toThrow(
      `${path}: no context "c"; there are: a, b`,
    );
  });

  it('that is not there or not YAML is named', async () => {
    await using dir = await temporaryDirectory();
    const path = join(dir.path, 'config');
    await expect(connectionFromKubeconfig({ path, env: {} })).rejects.toThrow(
      `kubeconfig ${path} cannot be read: ENOENT`,
    );
    await writeFile(path, 'a: [');
    await expect(connectionFromKubeconfig({ path, env: {} })).rejects.toThrow(
      `kubeconfig ${path} cannot be read:`,
    );
  });

  it('behind a SOCKS proxy is refused with a reason', async () => {
    await using dir = await temporaryDirectory();
    const cluster = { 'proxy-url': 'socks5://proxy:1080' };
    const path = await writeKubeconfig(join(dir.path, 'config'), [{ name: 'a', cluster }]);
    await expect(connectionFromKubeconfig({ path, env: {} })).rejects.toThrow(
      'SOCKS proxy, which is not supported',
    );
  });
});

describe('credentials that change', () => {
  it('a token file is read again', async () => {
    await using dir = await temporaryDirectory();
    const clock = manualClock();
    await writeFile(join(dir.path, 'token'), 'one');
    const path = await writeKubeconfig(join(dir.path, 'config'), [
      { name: 'a', user: { tokenFile: 'token' } },
    ]);
    const { credentials } = await connectionFromKubeconfig({ path, env: {}, clock });
    expect(await credentials?.identity()).toMatchObject({ headers: { authorization: 'Bearer one' } });
    await writeFile(join(dir.path, 'token'), 'two');
    await clock.advance(10_000);
    expect(await credentials?.identity()).toMatchObject({ headers: { authorization: 'Bearer two' } });
  });

  it('a kubeconfig with a new token is read again when the server refuses the old one', async () => {
    await using dir = await temporaryDirectory();
    const path = await writeKubeconfig(join(dir.path, 'config'), [{ name: 'a', user: { token: 'one' } }]);
    const { credentials } = await connectionFromKubeconfig({ path, env: {} });
    const used = (await credentials?.identity()) ?? { headers: {} };
    await writeKubeconfig(path, [{ name: 'a', user: { token: 'two' } }]);
    expect(await credentials?.renew(used)).toBe(true);
    expect(await credentials?.identity()).toMatchObject({ headers: { authorization: 'Bearer two' } });
  });

  it('an exec plugin runs once per token, and again after a refusal; it is told what it needs', async () => {
    await using dir = await temporaryDirectory();
    const plugin = join(dir.path, 'plugin');
    await writeFile(
      plugin,
      `#!/bin/sh
cd "$(dirname "$0")"
echo "$KUBERNETES_EXEC_INFO $EXTRA" >> calls
n=$(wc -l < calls | tr -d ' ')
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"token-'$n'"}}'
`,
    );
    await chmod(plugin, 0o755);
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: './plugin',
      interactiveMode: 'Never',
      env: [{ name: 'EXTRA', value: 'set' }],
    };
    const path = await writeKubeconfig(join(dir.path, 'config'), [{ name: 'a', user: { exec } }]);
    const clock = manualClock();
    const { credentials } = await connectionFromKubeconfig({ path, env: {}, clock });
    const used = (await credentials?.identity()) ?? { headers: {} };
    expect(used.headers).toEqual({ authorization: 'Bearer token-1' });
    await clock.advance(30_000);
    expect(await credentials?.identity()).toMatchObject({ headers: { authorization: 'Bearer token-1' } });
    expect(await credentials?.renew(used)).toBe(true);
    expect(await credentials?.identity()).toMatchObject({ headers: { authorization: 'Bearer token-2' } });
    const [call = ''] = (await readFile(join(dir.path, 'calls'), 'utf8')).split('\n');
    expect(call).toContain('"kind":"ExecCredential"');
    expect(call).toContain('set');
  });

  it('an exec plugin that fails says so', async () => {
    await using dir = await temporaryDirectory();
    const exec = { command: '/bin/sh', args: ['-c', 'echo "login first" >&2; exit 1'] };
    const path = await writeKubeconfig(join(dir.path, 'config'), [{ name: 'a', user: { exec } }]);
    const { credentials } = await connectionFromKubeconfig({ path, env: {} });
    await expect(credentials?.identity()).rejects.toThrow('login first');
  });
});

describe('where a cluster is looked for', () => {
  it('KUBECONFIG may name several files; the first word counts, absent files do not', async () => {
    await using dir = await temporaryDirectory();
    const first = await writeKubeconfig(join(dir.path, 'first'), [{ name: 'a', user: { token: 'first' } }]);
    const second = await writeKubeconfig(join(dir.path, 'second'), [
      { name: 'a', server: 'https://other:6443', user: { token: 'second' } },
      { name: 'b' },
    ]);
    const env = { KUBECONFIG: `${join(dir.path, 'absent')}:${first}:${second}` };
    expect((await connectionFromKubeconfig({ env })).server).toBe('https://a.example:6443');
    expect((await connectionFromKubeconfig({ env, context: 'b' })).server).toBe('https://b.example:6443');
  });

  it('in a Pod its ServiceAccount goes before ~/.kube/config', async () => {
    await using dir = await temporaryDirectory();
    const serviceAccountDir = join(dir.path, 'sa');
    await mkdir(serviceAccountDir);
    for (const [name, text] of Object.entries({ token: 'abc', 'ca.crt': CA, namespace: 'operators\n' }))
      await writeFile(join(serviceAccountDir, name), text);
    await mkdir(join(dir.path, '.kube'));
    await writeKubeconfig(join(dir.path, '.kube', 'config'), [{ name: 'home' }]);
    const env = { HOME: dir.path, KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    expect(await connectionFromKubeconfig({ env, serviceAccountDir })).toMatchObject({
      server: 'https://[fd00::1]:443',
      ca: CA,
      tokenFile: join(serviceAccountDir, 'token'),
      namespace: 'operators',
      source: 'in-cluster',
    });
    const outside = await connectionFromKubeconfig({ env: { HOME: dir.path }, serviceAccountDir });
    expect(outside.server).toBe('https://home.example:6443');
    await expect(inClusterConnection({ env: {}, serviceAccountDir })).resolves.toBeUndefined();
  });

  it('without any of them, says what was looked for', async () => {
    await using dir = await temporaryDirectory();
    await expect(connectionFromKubeconfig({ env: { HOME: dir.path } })).rejects.toThrow(
      `no cluster to talk to: KUBECONFIG is not set, ${dir.path}/.kube/config is not there`,
    );
  });
});
