import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { temporaryDirectory } from '../../test/support/temporary-directory.ts';
import {
  CachedCredentials,
  type Identity,
  jwtExpiry,
  tokenFileCredentials,
  tokenIdentity,
} from './credentials.ts';

const jwt = (payload: object): string =>
  `e30.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.c2ln`;
const bearer = (token: string): Identity['headers'] => ({ authorization: `Bearer ${token}` });

describe('a token file', () => {
  it('is read again after 10 s', async () => {
    await using dir = await temporaryDirectory();
    const file = join(dir.path, 'token');
    const clock = manualClock();
    const credentials = tokenFileCredentials(file, clock);
    await writeFile(file, 'one\n');
    expect((await credentials.identity()).headers).toEqual(bearer('one'));
    await writeFile(file, 'two\n');
    await clock.advance(9_999);
    expect((await credentials.identity()).headers).toEqual(bearer('one'));
    await clock.advance(1);
    expect((await credentials.identity()).headers).toEqual(bearer('two'));
  });

  it('is read again at once when the server refuses the token', async () => {
    await using dir = await temporaryDirectory();
    const file = join(dir.path, 'token');
    const credentials = tokenFileCredentials(file, manualClock());
    await writeFile(file, 'one');
    const used = await credentials.identity();
    await expect(credentials.renew(used)).resolves.toBe(false);
    await writeFile(file, 'two');
    await expect(credentials.renew(used)).resolves.toBe(true);
    expect((await credentials.identity()).headers).toEqual(bearer('two'));
  });

  it('that is gone for a moment leaves us with what we have', async () => {
    await using dir = await temporaryDirectory();
    const file = join(dir.path, 'token');
    const clock = manualClock();
    const credentials = tokenFileCredentials(file, clock);
    await expect(credentials.identity()).rejects.toThrow('ENOENT');
    await writeFile(file, 'one');
    await credentials.identity();
    await rm(file);
    await clock.advance(20_000);
    expect((await credentials.identity()).headers).toEqual(bearer('one'));
  });
});

describe('CachedCredentials', () => {
  const counting = (tokens: readonly string[]) => {
    const loads: boolean[] = [];
    const load = (fresh: boolean): Promise<Identity> => {
      loads.push(fresh);
      return Promise.resolve(tokenIdentity(tokens[Math.min(loads.length, tokens.length) - 1] ?? ''));
    };
    return { loads, load };
  };

  it('one look serves all who wait for it, and then answers at once', async () => {
    const { loads, load } = counting(['one']);
    const credentials = new CachedCredentials({ load, clock: manualClock() });
    await Promise.all([credentials.identity(), credentials.identity(), credentials.identity()]);
    expect(loads).toEqual([false]);
    expect(credentials.identity()).not.toBeInstanceOf(Promise);
  });

  it('asks for a fresh token shortly before the old one expires, at most once a second', async () => {
    const clock = manualClock();
    const expiring = jwt({ exp: clock.now() / 1000 + 12 });
    const { loads, load } = counting([expiring, expiring, 'new']);
    const credentials = new CachedCredentials({ load, clock, maxAgeMs: 60_000 });
    await credentials.identity();
    await clock.advance(1_000);
    await credentials.identity();
    expect(loads).toEqual([false]);
    await clock.advance(1_500);
    await credentials.identity();
    await credentials.identity();
    expect(loads).toEqual([false, true]);
    await clock.advance(1_000);
    expect((await credentials.identity()).headers).toEqual(bearer('new'));
  });

  it('after a refusal asks past the cache, unless somebody has done so', async () => {
    const { loads, load } = counting(['one', 'two']);
    const credentials = new CachedCredentials({ load, clock: manualClock() });
    const used = await credentials.identity();
    const renewed = await Promise.all([credentials.renew(used), credentials.renew(used)]);
    expect(renewed).toEqual([true, true]);
    await expect(credentials.renew(used)).resolves.toBe(true);
    expect(loads).toEqual([false, true]);
  });
});

it.each([
  [jwt({ exp: 1_700_000_000 }), 1_700_000_000_000],
  [jwt({}), undefined],
  ['opaque', undefined],
  ['a.b.c', undefined],
])('expiry of %s', (token, expected) => expect(jwtExpiry(token)).toBe(expected));
