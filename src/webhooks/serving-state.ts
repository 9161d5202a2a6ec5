/**
 * What the Secret of the webhooks holds, and what is due in it. Pure but for
 * making keys, so that a year of renewals can be tested in a moment.
 *
 * A new authority is trusted first and used later: it goes into the bundle at
 * 2/3 of the old one's life, but signs nothing until every API server had the
 * time to learn of it. The old one stays in the bundle to its end. Its key is
 * thrown away at once: what it signed outlasts the overlap.
 */
import { createPrivateKey } from 'node:crypto';
import {
  covers,
  createAuthority,
  expiresAt,
  hostsOf,
  issueServing,
  madeAt,
  readCertificate,
  splitBundle,
} from './authority.ts';
import type { KeyPair } from '../kube/certificates.ts';

export interface ServingState {
  readonly serving: KeyPair;
  /** Certificates to trust, the newest first. */
  readonly authorities: readonly string[];
  /** Key of the newest authority. */
  readonly signingKey: string;
}

export interface RenewalSettings {
  readonly hosts: readonly string[];
  /** Of a serving certificate. */
  readonly lifetimeMs: number;
  readonly authorityLifetimeMs: number;
  /** The part of a life after which it is renewed. */
  readonly renewAfter: number;
  /** How long a new authority is only trusted before it signs. */
  readonly overlapMs: number;
}

const COMMON_NAME = 'taskflow-operator webhooks';

/** The state after everything that is due; the same object if nothing is. */
export async function renewed(
  state: Partial<ServingState> | undefined,
  settings: RenewalSettings,
  now: number,
): Promise<ServingState> {
  const trusted = (state?.authorities ?? []).filter((certPem) => expiresAt(certPem) > now);
  const [newest] = trusted;
  const usable =
    newest !== undefined && belongs(newest, state?.signingKey) && authorityDue(newest, settings) > now;
  const signer =
    usable && state?.signingKey !== undefined
      ? { certPem: newest, keyPem: state.signingKey }
      : await createAuthority({
          commonName: COMMON_NAME,
          now,
          lifetimeMs: settings.authorityLifetimeMs,
        });
  const authorities = usable ? trusted : [signer.certPem, ...trusted];
  const good = state?.serving && isGood(state.serving, authorities, now) ? state.serving : undefined;
  const missing = good ? settings.hosts.filter((host) => !covers(certificateOf(good), host)) : [];
  if (good && missing.length === 0 && servingDue(good, signer.certPem, settings) > now) {
    const unchanged = usable && trusted.length === state?.authorities?.length;
    return unchanged ? (state as ServingState) : { serving: good, authorities, signingKey: signer.keyPem };
  }
  return {
    serving: await issueServing(signer, {
      // Replicas of two versions may be called by different names: neither takes the other's away.
      hosts: good && missing.length > 0 ? [...hostsOf(certificateOf(good)), ...missing] : settings.hosts,
      expiresAt: Math.min(now + settings.lifetimeMs, expiresAt(signer.certPem)),
    }),
    authorities,
    signingKey: signer.keyPem,
  };
}

/** When `renewed` will have something to do. */
export function nextDue({ serving, authorities }: ServingState, settings: RenewalSettings): number {
  const newest = authorities[0] ?? '';
  const ends = authorities.slice(1).map(expiresAt);
  return Math.min(servingDue(serving, newest, settings), authorityDue(newest, settings), ...ends);
}

function authorityDue(certPem: string, { authorityLifetimeMs, renewAfter }: RenewalSettings): number {
  return expiresAt(certPem) - authorityLifetimeMs * (1 - renewAfter);
}

function servingDue(serving: KeyPair, newestAuthority: string, settings: RenewalSettings): number {
  const end = expiresAt(serving.certPem);
  const restMs = settings.lifetimeMs * (1 - settings.renewAfter);
  const trustedEverywhere = madeAt(newestAuthority) + Math.min(settings.overlapMs, restMs / 2);
  // However short the overlap became because nobody was there: before the end it must be done.
  return Math.min(Math.max(end - restMs, trustedEverywhere), end - restMs / 4);
}

/** Fit to be served, whatever the names in it. */
function isGood(serving: KeyPair, authorities: readonly string[], now: number): boolean {
  const certificate = readCertificate(serving.certPem);
  return (
    certificate !== undefined &&
    belongs(serving.certPem, serving.keyPem) &&
    certificate.validToDate.getTime() > now &&
    authorities.some((authority) => certificate.verify(certificateOf({ certPem: authority }).publicKey))
  );
}

function belongs(certPem: string, keyPem: string | undefined): boolean {
  try {
    return keyPem !== undefined && certificateOf({ certPem }).checkPrivateKey(createPrivateKey(keyPem));
  } catch {
    return false;
  }
}

function certificateOf({ certPem }: Pick<KeyPair, 'certPem'>) {
  const certificate = readCertificate(certPem);
  if (!certificate) throw new Error('not a certificate');
  return certificate;
}

const FIELDS = { certificate: 'tls.crt', key: 'tls.key', bundle: 'ca.crt', signingKey: 'ca.key' } as const;

/** As the `data` of a Secret. */
export function encodeState({ serving, authorities, signingKey }: ServingState): Record<string, string> {
  const text = {
    [FIELDS.certificate]: serving.certPem,
    [FIELDS.key]: serving.keyPem,
    [FIELDS.bundle]: authorities.join(''),
    [FIELDS.signingKey]: signingKey,
  };
  return Object.fromEntries(
    Object.entries(text).map(([field, value]) => [field, Buffer.from(value).toString('base64')]),
  );
}

/** Whatever of it can be read: what is missing or broken will be made anew. */
export function decodeState(data: Readonly<Record<string, string>> | undefined): Partial<ServingState> {
  const field = (name: string): string | undefined => {
    const value = data?.[name];
    return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8');
  };
  const certPem = field(FIELDS.certificate);
  const keyPem = field(FIELDS.key);
  const signingKey = field(FIELDS.signingKey);
  return {
    ...(certPem !== undefined && keyPem !== undefined && { serving: { certPem, keyPem } }),
    authorities: splitBundle(field(FIELDS.bundle) ?? '').toSorted((a, b) => madeAt(b) - madeAt(a)),
    ...(signingKey !== undefined && { signingKey }),
  };
}
