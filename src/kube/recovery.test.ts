import { describe, expect, it } from 'vitest';
import { apiErrorFrom, ConnectionError } from './errors.ts';
import { type Ending, type Recovery, RecoveryPlan } from './recovery.ts';

const ATTEMPT = { verb: 'watch', resource: 'pods' };
const TIMING = {
  backoff: { firstMs: 800, maxMs: 30_000 },
  slowBackoff: { firstMs: 3_000, maxMs: 12_000 },
  healthyAfterMs: 120_000,
};
const api = (code: number, retryAfterMs?: number) => apiErrorFrom(ATTEMPT, code, {}, retryAfterMs);
const broken = new ConnectionError(ATTEMPT, new Error('reset'));

function plan(): (
  ending: Ending | { error: unknown },
  lastedMs?: number,
  streamedList?: boolean,
) => Recovery {
  const recovery = new RecoveryPlan(TIMING, () => 1);
  return (ending, lastedMs = 5_000, streamedList = false) =>
    recovery.after({
      ending: 'error' in ending ? { why: 'failed', error: ending.error } : ending,
      lastedMs,
      streamedList,
    });
}

describe('after a watch', () => {
  it('that the server ended after its time: at once', () => {
    expect(plan()({ why: 'ended' })).toEqual({ reconnect: 'ended', waitMs: 0 });
  });

  it('that the server ended at once: later', () => {
    expect(plan()({ why: 'ended' }, 10)).toEqual({ reconnect: 'ended', waitMs: 800 });
  });

  it('that fell silent: at once, and no word about it', () => {
    expect(plan()({ why: 'silent' })).toEqual({ reconnect: 'silent', waitMs: 0 });
  });

  it('that broke: later each time, up to 30 s', () => {
    const after = plan();
    const waits = Array.from({ length: 8 }, () => after({ error: broken }).waitMs);
    expect(waits).toEqual([800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
    expect(after({ error: broken })).toMatchObject({ reconnect: 'failed', report: broken });
  });

  it('that broke after two healthy minutes: as the first time', () => {
    const after = plan();
    for (let i = 0; i < 5; i++) after({ error: broken });
    expect(after({ error: broken }, 120_000).waitMs).toBe(800);
  });

  it('whose version is too old: a list at once, but not again and again', () => {
    const after = plan();
    expect(after({ error: api(410) })).toEqual({ relist: true, waitMs: 0 });
    expect(after({ error: api(410) })).toEqual({ relist: true, waitMs: 1_600 });
    expect(after({ error: api(410) }, 120_000)).toEqual({ relist: true, waitMs: 0 });
  });

  it('whose version is from a future that was rolled back: a list', () => {
    const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
    const error = apiErrorFrom(ATTEMPT, 504, { reason: 'Timeout', details: { causes } });
    expect(plan()({ error })).toMatchObject({ relist: true });
  });

  it('that was refused with Retry-After: then', () => {
    expect(plan()({ error: api(429, 7_000) }).waitMs).toBeCloseTo(7_700);
  });

  it.each([403, 404])('that was refused with %d: slowly, whatever failed before', (code) => {
    const after = plan();
    for (let i = 0; i < 9; i++) after({ error: broken });
    expect(after({ error: api(code) })).toMatchObject({ reconnect: 'failed', waitMs: 3_000 });
    expect([1, 2, 3].map(() => after({ error: api(code) }).waitMs)).toEqual([6_000, 12_000, 12_000]);
    after({ why: 'ended' });
    expect(after({ error: api(code) }).waitMs).toBe(3_000);
  });

  it.each([400, 422])('that could not begin with a list (%d): without, and at once', (code) => {
    expect(plan()({ error: api(code) }, 5, true)).toEqual({ noStreams: true, waitMs: 0 });
    expect(plan()({ error: api(code) }, 5, false)).toMatchObject({ reconnect: 'failed', waitMs: 800 });
  });
});
