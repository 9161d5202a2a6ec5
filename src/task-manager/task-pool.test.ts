import { describe, expect, it } from 'vitest';
import type { PoolClass } from './task-manager.ts';
import { TaskPool, type TaskPoolOptions } from './task-pool.ts';

/** A pool whose places are kept until the test lets go of them, by name. */
function createPool(options: Partial<TaskPoolOptions> = {}) {
  const pool = new TaskPool({ size: 500, ...options });
  const inside = new Map<string, () => void>();
  const order: string[] = [];
  return {
    inside: () => [...inside.keys()],
    order,
    enter: (name: string, poolClass: PoolClass = 'default', priority = 0) =>
      pool.enter(poolClass, priority, (leave) => {
        inside.set(name, leave);
        order.push(name);
      }),
    leave: (name: string) => {
      inside.get(name)?.();
      inside.delete(name);
    },
  };
}

const everybodyHadATurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe('the task pool', () => {
  it.each([
    ['default', 200],
    ['sql', 64],
    ['job', 16],
    ['observe', 32],
  ] as const)('has %s places for %i tasks at once', async (poolClass, places) => {
    const { enter, inside } = createPool();
    for (let i = 0; i < places + 5; i++) enter(`${i}`, poolClass);
    await everybodyHadATurn();
    expect(inside()).toHaveLength(places);
  });

  it('begins nothing before the caller has finished what it is doing', async () => {
    const { enter, inside } = createPool();
    enter('a');
    expect(inside()).toEqual([]);
    await everybodyHadATurn();
    expect(inside()).toEqual(['a']);
  });

  it('lets the more urgent go first, and equals in the order in which they came', async () => {
    const { enter, leave, order } = createPool({ concurrency: { default: 1 } });
    enter('first');
    await everybodyHadATurn();
    enter('other-1');
    enter('user', 'default', 5);
    enter('deletion', 'default', 10);
    enter('other-2');
    for (const name of ['first', 'deletion', 'user', 'other-1']) {
      leave(name);
      await everybodyHadATurn();
    }
    expect(order).toEqual(['first', 'deletion', 'user', 'other-1', 'other-2']);
  });

  it('forgets who stepped out of the queue, even in the moment of being called', async () => {
    const { enter, leave, inside } = createPool({ concurrency: { default: 1 } });
    const withdraw = enter('changes its mind at once');
    withdraw();
    enter('a');
    await everybodyHadATurn();
    const withdrawQueued = enter('changes its mind later');
    enter('b');
    withdrawQueued();
    leave('a');
    await everybodyHadATurn();
    expect(inside()).toEqual(['b']);
  });

  it('keeps the size of the pool for all classes together, and lets them take turns', async () => {
    const { enter, leave, inside, order } = createPool({ size: 2 });
    for (let i = 0; i < 4; i++) enter(`default-${i}`);
    await everybodyHadATurn();
    enter('sql-0', 'sql');
    enter('job-0', 'job');
    expect(inside()).toEqual(['default-0', 'default-1']);
    while (inside().length > 0) {
      expect(inside().length).toBeLessThanOrEqual(2);
      leave(inside()[0] ?? '');
      await everybodyHadATurn();
    }
    expect(order.toSorted()).toEqual(['default-0', 'default-1', 'default-2', 'default-3', 'job-0', 'sql-0']);
    expect(order.indexOf('sql-0')).toBeLessThan(order.indexOf('default-3'));
  });

  it('works with a single place', async () => {
    const { enter, leave, inside } = createPool({ size: 1 });
    enter('a', 'sql');
    enter('b', 'observe');
    await everybodyHadATurn();
    expect(inside()).toEqual(['a']);
    leave('a');
    await everybodyHadATurn();
    expect(inside()).toEqual(['b']);
  });

  it('says what to change when it is given no places at all', () => {
    expect(() => new TaskPool({ size: 0 })).toThrow(
      'The task pool needs at least one place, not 0: set poolSize.',
    );
  });
});
