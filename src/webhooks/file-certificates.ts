/**
 * A certificate in files that somebody else renews. Mounted Secrets are swapped
 * by renaming a directory, which some file systems do not report, so besides
 * the watch there is a look every ten seconds. Files that do not fit together,
 * because only one of them is written yet, are not taken over.
 */
import { createPrivateKey } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readCertificate } from './authority.ts';
import type { CertificateObserver, ServingCertificates } from './certificates.ts';
import { silentLog, type WebhookLog } from './log.ts';
import { SteadyLoop } from './steady-loop.ts';
import type { KeyPair } from '../kube/certificates.ts';
import { type Clock, systemClock } from '../kube/clock.ts';

export interface FileCertificatesOptions {
  readonly certFile: string;
  readonly keyFile: string;
  /** What the API server must trust; without it somebody else tells it, as cert-manager's injector does. */
  readonly caFile?: string;
  readonly clock?: Clock;
  readonly observer?: CertificateObserver;
  readonly log?: WebhookLog;
}

const LOOK_EVERY_MS = 10_000;

interface Loaded {
  readonly pair: KeyPair;
  readonly caBundle: string | undefined;
}

export async function fileCertificates(options: FileCertificatesOptions): Promise<ServingCertificates> {
  return new FileCertificates(options, await load(options));
}

class FileCertificates implements ServingCertificates {
  readonly #options: FileCertificatesOptions;
  readonly #listeners = new Set<() => void>();
  readonly #watchers: readonly FSWatcher[];
  readonly #loop: SteadyLoop;
  #loaded: Loaded;

  constructor(options: FileCertificatesOptions, loaded: Loaded) {
    this.#options = options;
    this.#loaded = loaded;
    const log = options.log ?? silentLog;
    this.#loop = new SteadyLoop({
      clock: options.clock ?? systemClock,
      work: () => this.#reload(),
      onError: (error) => {
        options.observer?.failed?.();
        log.warn('webhook certificate files are not usable; the old ones are served on', { error });
      },
    });
    const directories = new Set(
      [options.certFile, options.keyFile, options.caFile ?? options.certFile].map((file) => dirname(file)),
    );
    this.#watchers = [...directories].map((directory) =>
      watch(directory, { persistent: false }, () => this.#loop.wake()).on('error', (error) =>
        log.warn('watch of the webhook certificate files failed', { error }),
      ),
    );
    this.#loop.start(LOOK_EVERY_MS);
  }

  get current(): KeyPair {
    return this.#loaded.pair;
  }

  get caBundle(): string | undefined {
    return this.#loaded.caBundle;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async stop(): Promise<void> {
    this.#listeners.clear();
    for (const watcher of this.#watchers) watcher.close();
    await this.#loop.stop();
  }

  async #reload(): Promise<number> {
    const { pair, caBundle } = this.#loaded;
    const loaded = await load(this.#options);
    const same =
      loaded.pair.certPem === pair.certPem &&
      loaded.pair.keyPem === pair.keyPem &&
      loaded.caBundle === caBundle;
    if (!same) {
      this.#loaded = loaded;
      for (const listener of this.#listeners) listener();
    }
    return LOOK_EVERY_MS;
  }
}

async function load({ certFile, keyFile, caFile, observer }: FileCertificatesOptions): Promise<Loaded> {
  const [certPem, keyPem, caBundle] = await Promise.all(
    [certFile, keyFile, caFile].map(async (file) =>
      file === undefined ? undefined : readFile(file, 'utf8'),
    ),
  );
  if (certPem === undefined || keyPem === undefined) throw new Error('a certificate needs two files');
  const certificate = readCertificate(certPem);
  if (!certificate) throw new Error(`"${certFile}" does not begin with a certificate`);
  if (!certificate.checkPrivateKey(createPrivateKey(keyPem)))
    throw new Error(`the key in "${keyFile}" is not that of the certificate in "${certFile}"`);
  observer?.read?.();
  return { pair: { certPem, keyPem }, caBundle };
}
