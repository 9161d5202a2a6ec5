import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { EventCorrelator } from './event-correlator.ts';

const FAILED = { object: 'pod a', type: 'Warning', reason: 'Failed', message: 'no luck' };

describe('EventCorrelator', () => {
  it('counts what comes again', () => {
    const correlator = new EventCorrelator(manualClock());
    const first = correlator.correlate(FAILED);
    const second = correlator.correlate(FAILED);
    expect(first).toMatchObject({ count: 1, message: 'no luck' });
    expect(second).toMatchObject({ key: first?.key, count: 2 });
    expect(correlator.correlate({ ...FAILED, reason: 'Other' })).toMatchObject({ count: 1 });
  });

  it('folds the tenth message of a kind within ten minutes', () => {
    const correlator = new EventCorrelator(manualClock());
    const results = Array.from({ length: 12 }, (_, n) =>
      correlator.correlate({ ...FAILED, message: `try ${n}` }),
    );
    expect(results.slice(0, 9).map((result) => result?.message)).toEqual(
      Array.from({ length: 9 }, (_, n) => `try ${n}`),
    );
    expect(results[9]).toMatchObject({ count: 1, message: '(combined from similar events): try 9' });
    expect(results[11]).toMatchObject({
      key: results[9]?.key,
      count: 3,
      message: '(combined from similar events): try 11',
    });
  });

  it('begins anew after ten quiet minutes', async () => {
    const clock = manualClock();
    const correlator = new EventCorrelator(clock);
    for (let n = 0; n < 12; n++) correlator.correlate({ ...FAILED, message: `try ${n}` });
    await clock.advance(600_001);
    expect(correlator.correlate({ ...FAILED, message: 'try again' })?.message).toBe('try again');
  });

  it('gives an object 25 writes at once, then one every five minutes; the count goes on', async () => {
    const clock = manualClock();
    const correlator = new EventCorrelator(clock);
    const written = Array.from({ length: 40 }, () => correlator.correlate(FAILED)).filter(
      (one) => one !== undefined,
    );
    expect(written).toHaveLength(25);
    expect(correlator.correlate({ ...FAILED, object: 'pod b' })).toBeDefined();
    await clock.advance(299_000);
    expect(correlator.correlate(FAILED)).toBeUndefined();
    await clock.advance(1_000);
    expect(correlator.correlate(FAILED)).toMatchObject({ count: 42 });
    expect(correlator.correlate(FAILED)).toBeUndefined();
  });

  it('remembers 4096 objects', () => {
    const correlator = new EventCorrelator(manualClock());
    correlator.correlate(FAILED);
    for (let n = 0; n < 4096; n++) correlator.correlate({ ...FAILED, object: `pod ${n}` });
    expect(correlator.correlate(FAILED)).toMatchObject({ count: 1 });
    expect(correlator.correlate({ ...FAILED, object: 'pod 4095' })).toMatchObject({ count: 2 });
  });
});
