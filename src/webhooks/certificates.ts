/**
 * The certificate that the webhooks are served with. Own: an authority of our
 * own in a Secret that all replicas share. Whoever finds something due renews
 * it; the Secret's resourceVersion lets one win, the others see the change by
 * their watch and take it over. Files: given, or mounted by cert-manager;
 * taken over when they change. Either way nothing has to be restarted.
 */
import { FORGIVENESS_MS, isForGood } from './for-good.ts';
import { silentLog, type WebhookLog } from './log.ts';
import {
  decodeState,
  encodeState,
  nextDue,
  renewed,
  type RenewalSettings,
  type ServingState,
} from './serving-state.ts';
import { SteadyLoop, wakeWhenSynced } from './steady-loop.ts';
import { type Secret, secrets } from '../kube/builtin-resources.ts';
import type { KeyPair } from '../kube/certificates.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Clock, systemClock } from '../kube/clock.ts';
import { AlreadyExists, Conflict, NotFound } from '../kube/errors.ts';
import { Reflector } from '../kube/reflector.ts';
import type { Stored } from '../kube/resource-type.ts';

export interface ServingCertificates {
  readonly current: KeyPair;
  /** PEM of what the API server must trust; undefined if somebody else tells it. */
  readonly caBundle: string | undefined;
  /** Called after either of them changed; what it returns ends that. */
  onChange(listener: () => void): () => void;
  stop(): Promise<void>;
}

/** For counters: `certwatcher_read_certificate_total` and its errors. */
export interface CertificateObserver {
  read?(): void;
  failed?(): void;
}

export interface OwnCertificatesOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly secretName: string;
  /** DNS names and addresses that the API server calls us by. */
  readonly hosts: readonly string[];
  /** Of the serving certificate; default 90 days. */
  readonly lifetimeMs?: number;
  /** Of the authority; default ten times that. */
  readonly authorityLifetimeMs?: number;
  /** The part of a life after which it is renewed; default 2/3. */
  readonly renewAfter?: number;
  /** How long a new authority is only trusted before it signs; default one hour. */
  readonly overlapMs?: number;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
  readonly observer?: CertificateObserver;
  readonly log?: WebhookLog;
}

const HOUR_MS = 60 * 60 * 1000;
const LIFETIME_MS = 90 * 24 * HOUR_MS;
/** Replicas that start together make as many tries as there are replicas. */
const TRIES = 20;
const LONGEST_PAUSE_MS = 24 * HOUR_MS;

/** Resolves when there is a certificate to serve with. */
export async function ownCertificates(options: OwnCertificatesOptions): Promise<ServingCertificates> {
  const certificates = new OwnCertificates(options);
  try {
    await certificates.establish();
  } catch (error) {
    await certificates.stop();
    throw error;
  }
  return certificates;
}

class OwnCertificates implements ServingCertificates {
  readonly #options: OwnCertificatesOptions;
  readonly #settings: RenewalSettings;
  readonly #clock: Clock;
  readonly #log: WebhookLog;
  readonly #listeners = new Set<() => void>();
  readonly #loop: SteadyLoop;
  readonly #reflector: Reflector<Secret>;
  readonly #aborted = (): void => void this.stop();
  #state: ServingState | undefined;

  constructor(options: OwnCertificatesOptions) {
    const { lifetimeMs = LIFETIME_MS } = options;
    this.#options = options;
    this.#settings = {
      hosts: options.hosts,
      lifetimeMs,
      authorityLifetimeMs: options.authorityLifetimeMs ?? 10 * lifetimeMs,
      renewAfter: options.renewAfter ?? 2 / 3,
      overlapMs: options.overlapMs ?? HOUR_MS,
    };
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLog;
    this.#loop = new SteadyLoop({
      work: (signal) => this.#refresh(signal),
      clock: this.#clock,
      onError: (error) => {
        this.#options.observer?.failed?.();
        this.#log.warn('webhook certificate could not be checked or renewed; the old one is served on', {
          error,
        });
      },
    });
    this.#reflector = new Reflector<Secret>({
      client: options.client,
      type: secrets,
      namespace: options.namespace,
      fieldSelector: `metadata.name=${options.secretName}`,
      onChange: () => this.#loop.wake(),
      onError: (error) => this.#log.warn('watch of the webhook certificate failed', { error }),
    });
  }

  get current(): KeyPair {
    return this.#established.serving;
  }

  get caBundle(): string {
    return this.#established.authorities.join('');
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The first time, what only a change of rights or of names can mend is an error and not a reason to wait. */
  async establish(): Promise<void> {
    const { signal } = this.#options;
    const began = this.#clock.now();
    let pauseMs = 250;
    for (;;) {
      signal?.throwIfAborted();
      try {
        const dueMs = await this.#refresh(signal);
        signal?.addEventListener('abort', this.#aborted, { once: true });
        this.#loop.start(dueMs);
        wakeWhenSynced(this.#reflector.start(), this.#loop);
        return;
      } catch (error) {
        const late = this.#clock.now() - began >= FORGIVENESS_MS;
        if (signal?.aborted || (late && isForGood(error))) throw error;
        this.#log.warn('webhook certificate could not be made yet', { error });
        await this.#clock.sleep(pauseMs, signal);
        pauseMs = Math.min(2 * pauseMs, 10_000);
      }
    }
  }

  async stop(): Promise<void> {
    this.#options.signal?.removeEventListener('abort', this.#aborted);
    this.#listeners.clear();
    await Promise.all([this.#reflector.stop(), this.#loop.stop()]);
  }

  get #established(): ServingState {
    if (!this.#state) throw new Error('there is no webhook certificate yet');
    return this.#state;
  }

  /** Takes over what the Secret has, after renewing in it what is due. */
  async #refresh(signal: AbortSignal | undefined): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      const secret = await this.#read(signal);
      const stored = secret && decodeState(secret.data);
      // A Secret that somebody deleted is restored from memory: the API servers trust what is in there.
      const state = await renewed(stored ?? this.#state, this.#settings, this.#clock.now());
      const written = state === stored || (await this.#write(secret, state, signal));
      if (written) {
        this.#adopt(state);
        return Math.min(LONGEST_PAUSE_MS, Math.max(0, nextDue(state, this.#settings) - this.#clock.now()));
      }
      if (attempt === TRIES)
        throw new Error(`Secret "${this.#options.secretName}" changed at each of ${TRIES} tries to write it`);
    }
  }

  async #read(signal: AbortSignal | undefined): Promise<Stored<Secret> | undefined> {
    const { client, namespace, secretName } = this.#options;
    try {
      return await client.get(secrets, { namespace, name: secretName }, signal ? { signal } : {});
    } catch (error) {
      if (error instanceof NotFound) return undefined;
      throw error;
    }
  }

  /** False if another replica was faster. */
  async #write(
    secret: Stored<Secret> | undefined,
    state: ServingState,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const { client, namespace, secretName } = this.#options;
    const data = { ...secret?.data, ...encodeState(state) };
    const options = { fieldManager: 'taskflow/webhooks', ...(signal && { signal }) };
    try {
      if (secret) await client.update(secrets, { ...secret, data }, options);
      else {
        const labels = { 'app.kubernetes.io/part-of': 'taskflow-operator' };
        const metadata = { namespace, name: secretName, labels };
        await client.create(secrets, { metadata, type: 'kubernetes.io/tls', data }, options);
      }
    } catch (error) {
      const lost = error instanceof Conflict || error instanceof AlreadyExists || error instanceof NotFound;
      // A namespace that is not there is also "not found", but no reason to try again at once.
      if (!lost || (error instanceof NotFound && !secret)) throw error;
      return false;
    }
    this.#log.info('webhook certificate renewed', {
      secret: secretName,
      authorities: state.authorities.length,
    });
    return true;
  }

  #adopt(state: ServingState): void {
    const old = this.#state;
    this.#state = state;
    this.#options.observer?.read?.();
    const same =
      old?.serving.certPem === state.serving.certPem &&
      old.authorities.join('') === state.authorities.join('');
    if (old && !same) for (const listener of this.#listeners) listener();
  }
}

export { fileCertificates, type FileCertificatesOptions } from './file-certificates.ts';
