import { describe, expect, it } from 'vitest';
import { apiErrorFrom, ConnectionError, DeadlineExceeded, RequestAborted } from './errors.ts';
import {
  DEFAULT_RETRY,
  deleteRepeatable,
  patchRepeatable,
  type Repeatable,
  retryDelay,
  updateRepeatable,
} from './retry.ts';

const ATTEMPT = { verb: 'get', resource: 'pods' };
const api = (code: number, retryAfterMs?: number) => apiErrorFrom(ATTEMPT, code, {}, retryAfterMs);
const broken = (code: string) => new ConnectionError(ATTEMPT, Object.assign(new Error(code), { code }));
const always: () => number = () => 0.5;

const FAULTS: readonly [name: string, error: unknown, repeatedFor: readonly Repeatable[]][] = [
  ['429', api(429), ['always', 'when-refused']],
  ['500', api(500), ['always']],
  ['503', api(503), ['always']],
  ['504', api(504), ['always']],
  ['501', api(501), []],
  ['404', api(404), []],
  ['409', api(409), []],
  ['401', api(401), []],
  ['connection refused', broken('ECONNREFUSED'), ['always', 'when-refused', 'when-unconnected']],
  ['no such host', broken('ENOTFOUND'), ['always', 'when-refused', 'when-unconnected']],
  ['connection reset', broken('ECONNRESET'), ['always']],
  ['other side closed', broken('UND_ERR_SOCKET'), ['always']],
  ['unknown authority', broken('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), []],
  ['expired certificate', broken('CERT_HAS_EXPIRED'), []],
  ['deadline', new DeadlineExceeded(ATTEMPT, 1), []],
  ['abort', new RequestAborted(ATTEMPT, 'why'), []],
  ['a bug of ours', new TypeError('x'), []],
];

describe('retryDelay', () => {
  describe.each(FAULTS)('%s', (_name, error, repeatedFor) => {
    it.each<Repeatable>(['always', 'when-refused', 'when-unconnected', 'never'])(
      'repeatable %s',
      (repeatable) => {
        const delay = retryDelay(error, repeatable, 1, DEFAULT_RETRY, always);
        expect(delay !== undefined).toBe(repeatedFor.includes(repeatable));
      },
    );
  });

  it('waits longer each time, up to a limit, and then gives up', () => {
    const policy = { maxTries: 5, firstMs: 100, maxMs: 300 };
    const delays = [1, 2, 3, 4, 5].map((tries) => retryDelay(api(500), 'always', tries, policy, () => 1));
    expect(delays).toEqual([100, 200, 300, 300, undefined]);
    expect(retryDelay(api(500), 'always', 1, policy, () => 0)).toBe(0);
  });

  it('Retry-After wins, a little stretched', () => {
    expect(retryDelay(api(429, 3_000), 'always', 1, DEFAULT_RETRY, () => 0)).toBe(3_000);
    expect(retryDelay(api(429, 3_000), 'always', 1, DEFAULT_RETRY, () => 1)).toBeCloseTo(3_300);
  });
});

describe('what may be sent twice', () => {
  const versioned = { metadata: { resourceVersion: '7' }, spec: {} };
  it.each<[string, Repeatable, Repeatable]>([
    ['update with a version', updateRepeatable(versioned), 'always'],
    ['update without', updateRepeatable({ metadata: {} }), 'when-refused'],
    ['merge patch with a version', patchRepeatable({ kind: 'merge', body: versioned }), 'always'],
    ['merge patch without', patchRepeatable({ kind: 'merge', body: { spec: {} } }), 'when-refused'],
    ['strategic patch with a version', patchRepeatable({ kind: 'strategic', body: versioned }), 'always'],
    ['apply', patchRepeatable({ kind: 'apply', body: {} }), 'always'],
    [
      'JSON patch with a test of the version',
      patchRepeatable({
        kind: 'json',
        body: [{ op: 'test', path: '/metadata/resourceVersion', value: '7' }],
      }),
      'always',
    ],
    [
      'JSON patch without',
      patchRepeatable({ kind: 'json', body: [{ op: 'remove', path: '/a' }] }),
      'when-refused',
    ],
    ['delete with a uid', deleteRepeatable({ uid: 'u' }), 'always'],
    ['delete without', deleteRepeatable(undefined), 'when-refused'],
    ['delete with empty preconditions', deleteRepeatable({}), 'when-refused'],
  ])('%s', (_name, actual, expected) => expect(actual).toBe(expected));
});
