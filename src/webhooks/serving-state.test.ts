import { connect, createServer, type TLSSocket } from 'node:tls';
import { once } from 'node:events';
import { X509Certificate } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createAuthority, expiresAt } from './authority.ts';
import {
  decodeState,
  encodeState,
  nextDue,
  renewed,
  type RenewalSettings,
  type ServingState,
} from './serving-state.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const settings: RenewalSettings = {
  hosts: ['webhook.taskflow.svc', '127.0.0.1'],
  lifetimeMs: 90 * DAY,
  authorityLifetimeMs: 900 * DAY,
  renewAfter: 2 / 3,
  overlapMs: HOUR,
};
/** Certificates are good to the second. */
const START = Math.floor(Date.now() / 1000) * 1000;

describe('renewed', () => {
  it('makes an authority and a certificate for all hosts out of nothing', async () => {
    const state = await renewed(undefined, settings, START);
    const certificate = new X509Certificate(state.serving.certPem);
    expect(certificate.checkHost('webhook.taskflow.svc')).toBeDefined();
    expect(certificate.checkIP('127.0.0.1')).toBeDefined();
    expect(certificate.validToDate.getTime()).toBe(START + settings.lifetimeMs);
    expect(state.authorities).toHaveLength(1);
    expect(expiresAt(state.authorities[0] ?? '')).toBe(START + settings.authorityLifetimeMs);
  });

  it('changes nothing before 2/3 of the life, and then only the certificate', async () => {
    const state = await renewed(undefined, settings, START);
    expect(nextDue(state, settings)).toBe(START + 60 * DAY);
    expect(await renewed(state, settings, START + 60 * DAY - 1000)).toBe(state);
    const later = await renewed(state, settings, START + 60 * DAY);
    expect(later.serving).not.toEqual(state.serving);
    expect(later.authorities).toEqual(state.authorities);
    expect(later.signingKey).toBe(state.signingKey);
  });

  it('survives being stored', async () => {
    const state = await renewed(undefined, settings, START);
    const stored = decodeState(encodeState(state));
    expect(stored).toEqual(state);
    expect(await renewed(stored, settings, START)).toBe(stored);
  });

  it('trusts a new authority before it signs, and the old one to its end', async () => {
    const state = await renewed(undefined, settings, START);
    const due = START + 600 * DAY;
    // Just renewed, so that nothing but the authority is due.
    const before = await renewed(state, settings, due - DAY);
    const introduced = await renewed(before, settings, due);
    expect(introduced.authorities).toHaveLength(2);
    expect(introduced.authorities[1]).toBe(state.authorities[0]);
    expect(introduced.serving).toEqual(before.serving);
    const nextServing = await renewed(introduced, settings, nextDue(introduced, settings));
    expect(signedBy(nextServing)).toBe(0);
    expect(nextServing.authorities).toHaveLength(2);
    const gone = await renewed(nextServing, settings, START + 900 * DAY);
    expect(gone.authorities).toHaveLength(1);
  });

  it('waits with a certificate that falls due together with its authority', async () => {
    const short = { ...settings, authorityLifetimeMs: 90 * DAY };
    const state = await renewed(undefined, short, START);
    const due = nextDue(state, short);
    const introduced = await renewed(state, short, due);
    expect(introduced.authorities).toHaveLength(2);
    expect(introduced.serving).toEqual(state.serving);
    expect(nextDue(introduced, short)).toBe(due + HOUR);
    expect(signedBy(await renewed(introduced, short, due + HOUR))).toBe(0);
  });

  it.each<readonly [name: string, broken: (state: ServingState) => Partial<ServingState>]>([
    ['no key of the authority', ({ serving, authorities }) => ({ serving, authorities })],
    ['a key that is not one', (state) => ({ ...state, signingKey: 'rubbish' })],
    ['the key of another', (state) => ({ ...state, signingKey: state.serving.keyPem })],
  ])('%s: a new authority is trusted first, what is served is kept', async (_, broken) => {
    const state = await renewed(undefined, settings, START);
    const mended = await renewed(broken(state), settings, START + DAY);
    expect(mended.authorities).toHaveLength(2);
    expect(mended.serving).toEqual(state.serving);
  });

  it.each<readonly [name: string, broken: (state: ServingState) => Partial<ServingState>]>([
    ['no certificate', ({ authorities, signingKey }) => ({ authorities, signingKey })],
    ['no certificate that can be read', (state) => ({ ...state, serving: { certPem: 'x', keyPem: 'y' } })],
    [
      'a key of something else',
      (state) => ({
        ...state,
        serving: { ...state.serving, keyPem: state.signingKey },
      }),
    ],
  ])('%s: a new one is signed by the old authority', async (_, broken) => {
    const state = await renewed(undefined, settings, START);
    const mended = await renewed(broken(state), settings, START + DAY);
    expect(mended.authorities).toEqual(state.authorities);
    expect(signedBy(mended)).toBe(0);
  });

  it('makes everything anew of rubbish and of what has ended', async () => {
    const rubbish = decodeState({ 'tls.crt': 'AAAA', 'ca.crt': 'AAAA', 'ca.key': '' });
    expect(signedBy(await renewed(rubbish, settings, START))).toBe(0);
    const old = await renewed(undefined, settings, START);
    const fresh = await renewed(old, settings, START + 1000 * DAY);
    expect(fresh.authorities).toHaveLength(1);
    expect(fresh.authorities).not.toEqual(old.authorities);
  });

  it('replaces a certificate of a stranger', async () => {
    const state = await renewed(undefined, settings, START);
    const other = await renewed(undefined, settings, START);
    expect(signedBy(await renewed({ ...state, serving: other.serving }, settings, START))).toBe(0);
  });

  it('adds a host of another replica, and both are content', async () => {
    const one = { ...settings, hosts: ['one.svc'] };
    const two = { ...settings, hosts: ['two.svc'] };
    const both = await renewed(await renewed(undefined, one, START), two, START);
    expect(await renewed(both, one, START)).toBe(both);
    expect(await renewed(both, two, START)).toBe(both);
    // When its time is over, it is made for those who are still there.
    const later = await renewed(both, two, START + 61 * DAY);
    expect(new X509Certificate(later.serving.certPem).checkHost('one.svc')).toBeUndefined();
  });

  it('never has a moment in years at which the last bundle but one distrusts what is served', async () => {
    const fast: RenewalSettings = {
      ...settings,
      lifetimeMs: 9 * HOUR,
      authorityLifetimeMs: 20 * HOUR,
      overlapMs: HOUR,
    };
    let state = await renewed(undefined, fast, START);
    let now = START;
    const authorities = new Set(state.authorities);
    for (let step = 0; step < 60; step++) {
      now = Math.max(now + 1000, nextDue(state, fast));
      const next = await renewed(state, fast, now);
      expect(expiresAt(state.serving.certPem)).toBeGreaterThan(now);
      // API servers that have not heard of this step trust what is served after it.
      expect(signedBy({ ...next, authorities: state.authorities })).toBeDefined();
      for (const authority of next.authorities) authorities.add(authority);
      expect(next.authorities.length).toBeLessThanOrEqual(3);
      state = next;
    }
    expect(authorities.size).toBeGreaterThan(5);
  }, 30_000);
});

describe('what is made', () => {
  it('is accepted by a TLS client that trusts only the bundle, with an old authority in it', async () => {
    const state = await renewed(undefined, settings, START);
    const old = await createAuthority({ commonName: 'old', now: START, lifetimeMs: DAY });
    const server = createServer({ cert: state.serving.certPem, key: state.serving.keyPem });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const socket: TLSSocket = connect({
      host: '127.0.0.1',
      port,
      ca: old.certPem + state.authorities.join(''),
    });
    await once(socket, 'secureConnect');
    expect(socket.authorized).toBe(true);
    socket.destroy();
    server.close();
  });
});

/** Which authority of the bundle signed what is served. */
function signedBy({ serving, authorities }: ServingState): number | undefined {
  const certificate = new X509Certificate(serving.certPem);
  const index = authorities.findIndex((pem) => certificate.verify(new X509Certificate(pem).publicKey));
  return index < 0 ? undefined : index;
}
