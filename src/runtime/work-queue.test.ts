import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { WorkQueue, type WorkQueueOptions } from './work-queue.ts';

function createQueue(options: Omit<WorkQueueOptions, 'clock'> = {}) {
  const clock = manualClock();
  return { clock, queue: new WorkQueue({ clock, random: () => 0.5, ...options }) };
}

describe('WorkQueue', () => {
  it('holds a key once, however often it is added', async () => {
    const { queue } = createQueue();
    for (let i = 0; i < 5; i++) queue.add('a');
    queue.add('b');
    expect([await queue.next(), await queue.next()]).toEqual(['a', 'b']);
    expect(queue.depth('normal')).toBe(0);
  });

  it('never gives a key to two workers; added meanwhile, it comes again', async () => {
    const { queue } = createQueue();
    queue.add('a');
    expect(await queue.next()).toBe('a');
    queue.add('a');
    queue.add('a');
    queue.add('b');
    expect(await queue.next()).toBe('b');
    const waiting = queue.next();
    queue.done('a');
    expect(await waiting).toBe('a');
    queue.done('a');
    expect(queue.snapshot()).toEqual({ ready: [], working: ['b'], delayed: [] });
  });

  it('serves changes before background looks, and lifts a key that changes', async () => {
    const { queue } = createQueue();
    queue.add('resync-1', 'background');
    queue.add('resync-2', 'background');
    queue.add('changed');
    queue.add('resync-2', 'normal');
    expect([await queue.next(), await queue.next(), await queue.next()]).toEqual([
      'changed',
      'resync-2',
      'resync-1',
    ]);
  });

  it('of several delays takes the shortest, and an event makes the delay pointless', async () => {
    const { clock, queue } = createQueue();
    queue.addAfter('a', 1_000);
    queue.addAfter('a', 100);
    queue.addAfter('a', 5_000);
    await clock.advance(99);
    expect(queue.depth('background')).toBe(0);
    await clock.advance(1);
    expect(queue.depth('background')).toBe(1);
    queue.addAfter('b', 60_000);
    queue.add('b');
    expect(clock.pending).toBe(0);
  });

  it('makes failures wait longer each time up to a limit, until they are forgotten', () => {
    const { queue } = createQueue({ bucket: { perSecond: 1e6, burst: 1e6 } });
    const delays = Array.from({ length: 20 }, () => queue.addRateLimited('a'));
    expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40]);
    expect(delays.at(-1)).toBe(300_000);
    queue.forget('a');
    expect(queue.addRateLimited('a')).toBe(5);
  });

  it('spreads delays by a fifth in either direction', () => {
    for (const [random, expected] of [
      [0, 4],
      [1, 6],
    ] as const)
      expect(createQueue({ random: () => random }).queue.addRateLimited('a')).toBe(expected);
  });

  it('lets 100 failures pass at once, then ten a second, whatever their keys', () => {
    const { queue } = createQueue({ backoff: { baseMs: 0, maxMs: 0 } });
    const delays = Array.from({ length: 120 }, (_, at) => queue.addRateLimited(`key-${at}`));
    expect(delays.slice(0, 100).every((delay) => delay === 0)).toBe(true);
    expect(delays[100]).toBeCloseTo(100);
    expect(delays[119]).toBeCloseTo(2_000);
  });

  it('honours what the server asked for', () => {
    expect(createQueue().queue.addRateLimited('a', 7_000)).toBe(7_000);
  });

  it('closed, it releases its workers and takes nothing more', async () => {
    const { clock, queue } = createQueue();
    const waiting = queue.next();
    queue.addAfter('a', 10);
    queue.close();
    queue.add('b');
    await clock.advance(100);
    expect(await waiting).toBeUndefined();
    expect(await queue.next()).toBeUndefined();
    expect(queue.snapshot()).toEqual({ ready: [], working: [], delayed: [] });
  });

  it('keeps its promises under random use', async () => {
    let seed = 42;
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
    const { queue } = createQueue();
    const working = new Set<string>();
    const unseen = new Set<string>();
    const twice: string[] = [];
    for (let step = 0; step < 5_000; step++) {
      const key = `k${Math.floor(random() * 10)}`;
      if (random() < 0.5) {
        queue.add(key, random() < 0.5 ? 'normal' : 'background');
        unseen.add(key);
      } else if (queue.depth('normal') + queue.depth('background') > 0 && random() < 0.6) {
        const taken = (await queue.next()) ?? '';
        if (working.has(taken)) twice.push(taken);
        working.add(taken);
        unseen.delete(taken);
      } else if (working.size > 0) {
        const [finished = ''] = working;
        working.delete(finished);
        queue.done(finished);
      }
    }
    expect(twice).toEqual([]);
    for (const key of working) queue.done(key);
    const rest = queue.snapshot().ready;
    expect([...unseen].filter((key) => !rest.includes(key))).toEqual([]);
  });
});
