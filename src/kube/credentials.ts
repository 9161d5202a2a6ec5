/**
 * Who we are to an API server. Tokens and certificates that come from files
 * or programs change while we run: they are looked at again every few
 * seconds, before they expire, and when the server refused them. Only one
 * look is under way at a time, however many calls wait for it.
 */
import { readFile } from 'node:fs/promises';
import { type Clock, systemClock } from './clock.ts';

export interface Identity {
  readonly headers: Readonly<Record<string, string>>;
  readonly clientCertificate?: { readonly certPem: string; readonly keyPem: string } | undefined;
  /** Milliseconds since 1970. */
  readonly expiresAt?: number | undefined;
}

export interface Credentials {
  /** For the next request; answers at once as long as nothing has to be read. */
  identity(): Identity | Promise<Identity>;
  /** The server refused `used`: whether there is a different one now. */
  renew(used: Identity): Promise<boolean>;
}

export interface CachedCredentialsOptions {
  /** `fresh`: do not answer from a cache, the server refused what was there. */
  readonly load: (fresh: boolean) => Promise<Identity>;
  readonly clock?: Clock;
  /** How old a reading may be; default 10 s. */
  readonly maxAgeMs?: number;
}

const MAX_AGE_MS = 10_000;
/** Tokens are looked at again so long before their end. */
const EXPIRY_MARGIN_MS = 10_000;
/** An expired token that the file still holds is not read for every request. */
const MIN_AGE_MS = 1_000;

export class CachedCredentials implements Credentials {
  readonly #load: (fresh: boolean) => Promise<Identity>;
  readonly #clock: Clock;
  readonly #maxAgeMs: number;
  #current: Identity | undefined;
  #readAt = -Infinity;
  #reading: Promise<Identity> | undefined;

  constructor({ load, clock = systemClock, maxAgeMs = MAX_AGE_MS }: CachedCredentialsOptions) {
    this.#load = load;
    this.#clock = clock;
    this.#maxAgeMs = maxAgeMs;
  }

  identity(): Identity | Promise<Identity> {
    const age = this.#clock.monotonic() - this.#readAt;
    const { expiresAt = Infinity } = this.#current ?? {};
    const expiring = this.#clock.now() > expiresAt - EXPIRY_MARGIN_MS && age >= MIN_AGE_MS;
    if (this.#current && age < this.#maxAgeMs && !expiring) return this.#current;
    return this.#read(expiring);
  }

  async renew(used: Identity): Promise<boolean> {
    // Another call may have done it while ours was on its way.
    if (this.#current !== undefined && !sameIdentity(this.#current, used)) return true;
    const differs = async (reading: Promise<Identity>): Promise<boolean> =>
      !sameIdentity(await reading.catch(() => used), used);
    // A reading that is under way may be answered from a cache: worth a look, not the last word.
    return (this.#reading !== undefined && (await differs(this.#reading))) || differs(this.#read(true));
  }

  #read(fresh: boolean): Promise<Identity> {
    this.#reading ??= this.#readOnce(fresh).finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #readOnce(fresh: boolean): Promise<Identity> {
    try {
      this.#current = await this.#load(fresh);
    } catch (error) {
      // What we have may still be good; the server will say.
      if (!this.#current) throw error;
    }
    this.#readAt = this.#clock.monotonic();
    return this.#current;
  }
}

export function fixedCredentials(identity: Identity): Credentials {
  return { identity: () => identity, renew: () => Promise.resolve(false) };
}

/** A token that somebody else keeps fresh in a file, as the kubelet does in Pods. */
export function tokenFileCredentials(path: string, clock: Clock = systemClock): Credentials {
  return new CachedCredentials({
    clock,
    load: async () => tokenIdentity((await readFile(path, 'utf8')).trim()),
  });
}

export function tokenIdentity(token: string): Identity {
  return { headers: { authorization: `Bearer ${token}` }, expiresAt: jwtExpiry(token) };
}

/** Undefined for tokens that are no JWT, and for those without an end. */
export function jwtExpiry(token: string): number | undefined {
  const [, payload] = token.split('.');
  if (payload === undefined) return undefined;
  try {
    const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp?: unknown };
    return typeof exp === 'number' ? exp * 1000 : undefined;
  } catch {
    return undefined;
  }
}

function sameIdentity(a: Identity, b: Identity): boolean {
  return (
    a === b ||
    (a.headers['authorization'] === b.headers['authorization'] &&
      a.clientCertificate?.certPem === b.clientCertificate?.certPem &&
      a.clientCertificate?.keyPem === b.clientCertificate?.keyPem)
  );
}
