import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileCertificates, type ServingCertificates } from './certificates.ts';
import { renewed, type ServingState } from './serving-state.ts';

const settings = {
  hosts: ['localhost'],
  lifetimeMs: 3_600_000,
  authorityLifetimeMs: 36_000_000,
  renewAfter: 2 / 3,
  overlapMs: 0,
};
const make = (): Promise<ServingState> => renewed(undefined, settings, Date.now());

let directory: string;
let certificates: ServingCertificates | undefined;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'taskflow-certificates-'));
});
afterEach(async () => {
  await certificates?.stop();
  await rm(directory, { recursive: true });
});

const files = (): { certFile: string; keyFile: string } => ({
  certFile: join(directory, 'tls.crt'),
  keyFile: join(directory, 'tls.key'),
});

async function write({ serving }: ServingState, into = directory): Promise<void> {
  await writeFile(join(into, 'tls.crt'), serving.certPem);
  await writeFile(join(into, 'tls.key'), serving.keyPem);
}

function nextChange(of: ServingCertificates): Promise<void> {
  return new Promise((resolve) => {
    const forget = of.onChange(() => {
      forget();
      resolve();
    });
  });
}

describe('fileCertificates', () => {
  it('reads them, and reads them again when they change', async () => {
    const [first, second] = [await make(), await make()];
    await write(first);
    certificates = await fileCertificates(files());
    expect(certificates.current).toEqual(first.serving);
    expect(certificates.caBundle).toBeUndefined();
    const changed = nextChange(certificates);
    // In between, the certificate is new and the key is old.
    await write(second);
    await changed;
    expect(certificates.current).toEqual(second.serving);
  });

  it('hands on the authority where it is given', async () => {
    const state = await make();
    await write(state);
    const caFile = join(directory, 'ca.crt');
    await writeFile(caFile, state.authorities.join(''));
    certificates = await fileCertificates({ ...files(), caFile });
    expect(certificates.caBundle).toBe(state.authorities.join(''));
    const changed = nextChange(certificates);
    const other = await make();
    await writeFile(caFile, [...state.authorities, ...other.authorities].join(''));
    await changed;
    expect(certificates.caBundle).toContain(other.authorities[0]);
  });

  it('follows the way in which a mounted Secret is swapped', async () => {
    const [first, second] = [await make(), await make()];
    for (const [name, state] of Object.entries({ '..1': first, '..2': second })) {
      await mkdir(join(directory, name));
      await write(state, join(directory, name));
    }
    await symlink('..1', join(directory, '..data'));
    await symlink('..data/tls.crt', join(directory, 'tls.crt'));
    await symlink('..data/tls.key', join(directory, 'tls.key'));
    certificates = await fileCertificates(files());
    const changed = nextChange(certificates);
    await symlink('..2', join(directory, '..data_tmp'));
    await rename(join(directory, '..data_tmp'), join(directory, '..data'));
    await changed;
    expect(certificates.current).toEqual(second.serving);
  });

  it('keeps what it has while the files do not fit together', async () => {
    const [first, second] = [await make(), await make()];
    await write(first);
    const failed = Promise.withResolvers<void>();
    certificates = await fileCertificates({ ...files(), observer: { failed: () => failed.resolve() } });
    await writeFile(files().certFile, second.serving.certPem);
    await failed.promise;
    expect(certificates.current).toEqual(first.serving);
  });

  it('tells at the start what is wrong', async () => {
    await expect(fileCertificates(files())).rejects.toThrow('ENOENT');
    const [one, two] = [await make(), await make()];
    await write({ ...one, serving: { certPem: one.serving.certPem, keyPem: two.serving.keyPem } });
    await expect(fileCertificates(files())).rejects.toThrow('is not that of the certificate in');
    await writeFile(files().certFile, 'rubbish');
    await expect(fileCertificates(files())).rejects.toThrow('does not begin with a certificate');
  });
});
