import { describe, expect, it } from 'vitest';
import { openConnection } from './connection.ts';
import type { Identity } from './credentials.ts';

const withCertificate = (certPem: string): Identity => ({
  headers: {},
  clientCertificate: { certPem, keyPem: 'key' },
});

describe('a connection', () => {
  it('shares its agents among all calls, and keeps watches apart', async () => {
    await using connection = openConnection({ server: 'https://kube.example:6443', ca: 'ca', token: 'abc' });
    const identity = await connection.identity();
    expect(identity.headers).toEqual({ authorization: 'Bearer abc' });
    const { calls, watches } = connection.agents(identity);
    expect(calls).not.toBe(watches);
    expect(connection.agents({ ...identity }).calls).toBe(calls);
  });

  it('makes new agents for a new certificate only', async () => {
    await using connection = openConnection({ server: 'https://kube.example', ca: '' });
    const first = connection.agents(withCertificate('one'));
    expect(connection.agents(withCertificate('one'))).toBe(first);
    const second = connection.agents(withCertificate('two'));
    expect(second).not.toBe(first);
    expect(connection.agents(withCertificate('two'))).toBe(second);
  });

  it('knows the path of a server that is behind one', async () => {
    await using connection = openConnection({ server: 'https://rancher.example/k8s/clusters/c-1/', ca: '' });
    expect(connection).toMatchObject({ origin: 'https://rancher.example', basePath: '/k8s/clusters/c-1' });
  });

  it('that was closed opens nothing new', async () => {
    const connection = openConnection({ server: 'https://kube.example', ca: '' });
    await connection.close();
    expect(() => connection.agents(withCertificate('one'))).toThrow('was closed');
  });
});
