/** Whatever users and tasks do, in whatever order: the promises of the task manager hold. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../test/support/manual-clock.ts';
import { createTaskManager } from './pooled-task-manager.ts';
import { POOL_CLASSES, type PoolClass, type TaskManager, type TaskSpec } from './task-manager.ts';

const POOL_SIZE = 4;
const CONCURRENCY: Readonly<Record<PoolClass, number>> = { default: 3, sql: 2, job: 1, observe: 2 };
const SETTLE_MS = 30_000;
const KEYS = ['default/a', 'default/b', 'default/c', 'default/d'] as const;

type Step =
  | { readonly do: 'submit'; readonly spec: Omit<TaskSpec, 'taskId' | 'fn'> }
  | { readonly do: 'succeed' | 'fail' | 'heartbeat' | 'abort' | 'collect'; readonly nth: number }
  | { readonly do: 'purge'; readonly key: string }
  | { readonly do: 'pass time'; readonly ms: number };

const someSpec = fc.record(
  {
    kind: fc.constant('Widget'),
    key: fc.constantFrom(...KEYS),
    flow: fc.constant('flow'),
    task: fc.constant('task'),
    branch: fc.constantFrom('', 'left', 'right'),
    poolClass: fc.constantFrom(...POOL_CLASSES),
    priority: fc.constantFrom(0, 5, 10),
    timeoutMs: fc.constantFrom(1_000, 60_000),
    heartbeatMs: fc.constantFrom(500, 20_000),
    critical: fc.boolean(),
    detachable: fc.boolean(),
  },
  { requiredKeys: ['kind', 'key', 'flow', 'task'] },
);

const someStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('submit'), spec: someSpec }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('succeed', 'fail', 'heartbeat', 'abort', 'collect'),
      nth: fc.nat({ max: 20 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('purge'), key: fc.constantFrom(...KEYS) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('pass time'), ms: fc.constantFrom(0, 400, 5_000, SETTLE_MS) }),
  },
);

interface Running {
  readonly spec: TaskSpec;
  readonly succeed: () => void;
  readonly fail: () => void;
  readonly heartbeat: () => void;
}

/** A manager, and what a bystander knows of it from outside. */
class Scene {
  readonly clock: ManualClock = manualClock();
  readonly submitted: TaskSpec[] = [];
  /** By id: functions that were called, have not ended and are not detached. */
  readonly running = new Map<string, Running>();
  readonly settled = new Map<string, number>();
  readonly purged = new Set<string>();
  refused = 0;
  rightlyRefused = 0;
  readonly manager: TaskManager = createTaskManager({
    clock: this.clock,
    poolSize: POOL_SIZE,
    concurrency: CONCURRENCY,
    observer: { detached: ({ taskId }) => void this.running.delete(taskId) },
  });

  constructor() {
    this.manager.on('settled', (_kind, _key, taskId) => {
      this.settled.set(taskId, (this.settled.get(taskId) ?? 0) + 1);
    });
  }

  async play(step: Step): Promise<void> {
    if (step.do === 'submit') this.#submit(step.spec);
    else if (step.do === 'purge') this.#purge(step.key);
    else if (step.do === 'pass time') await this.clock.advance(step.ms);
    else if (step.do === 'abort') this.manager.abort(nth(this.#workingIds(), step.nth) ?? '', 'called off');
    else if (step.do === 'collect')
      this.manager.clean(nth(this.manager.snapshot().results, step.nth) ?? 'none');
    else nth([...this.running.values()], step.nth)?.[step.do]();
    await this.clock.advance(0);
  }

  #workingIds(): string[] {
    return this.manager.snapshot().working.map(({ taskId }) => taskId);
  }

  #submit(part: Omit<TaskSpec, 'taskId' | 'fn'>): void {
    const taskId = `t${this.submitted.length}`;
    const spec: TaskSpec = {
      ...part,
      taskId,
      settleMs: SETTLE_MS,
      fn: (run) => this.#run(spec, () => run.heartbeat()),
    };
    const occupied = this.manager
      .snapshot()
      .working.some(({ key, branch }) => key === spec.key && branch === (spec.branch ?? ''));
    if (this.#accepts(spec)) this.submitted.push(spec);
    else this.refused++;
    if (occupied) this.rightlyRefused++;
  }

  #accepts(spec: TaskSpec): boolean {
    try {
      this.manager.submit(spec);
      return true;
    } catch {
      return false;
    }
  }

  #run(spec: TaskSpec, heartbeat: () => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const end = (how: () => void) => () => {
      this.running.delete(spec.taskId);
      how();
    };
    this.running.set(spec.taskId, {
      spec,
      heartbeat,
      succeed: end(resolve),
      fail: end(() => reject(new Error('failed'))),
    });
    return promise;
  }

  #purge(key: string): void {
    for (const { taskId, key: other } of this.manager.snapshot().working) {
      if (other === key) this.purged.add(taskId);
    }
    this.manager.purge('Widget', key);
  }
}

function nth<T>(items: readonly T[], index: number): T | undefined {
  return items[index % Math.max(1, items.length)];
}

function expectPromisesHeld(scene: Scene): void {
  const { manager, running, settled, purged, submitted } = scene;
  expect(scene.refused, 'only the second in a slot is refused').toBe(scene.rightlyRefused);
  const { working, results } = manager.snapshot();
  const slots = working.map(({ key, branch }) => `${key} ${branch}`);
  expect(new Set(slots).size, 'one attempt per slot').toBe(slots.length);
  expect(running.size, 'the pool is not overfull').toBeLessThanOrEqual(POOL_SIZE);
  for (const poolClass of POOL_CLASSES) {
    const inClass = [...running.values()].filter(({ spec }) => (spec.poolClass ?? 'default') === poolClass);
    expect(inClass.length, `${poolClass} is not overfull`).toBeLessThanOrEqual(CONCURRENCY[poolClass]);
  }
  const workingIds = new Set(working.map(({ taskId }) => taskId));
  expect(results.filter((taskId) => workingIds.has(taskId) || purged.has(taskId))).toEqual([]);
  const missing = submitted.filter(
    ({ taskId }) => !workingIds.has(taskId) && !purged.has(taskId) && settled.get(taskId) !== 1,
  );
  expect(missing, 'who does not work has settled once').toEqual([]);
}

describe('whatever happens', () => {
  it('slots and places are never given twice, and every task settles exactly once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(someStep, { maxLength: 60 }), async (steps) => {
        const scene = new Scene();
        for (const step of steps) {
          await scene.play(step);
          expectPromisesHeld(scene);
        }
        while (scene.running.size > 0) await scene.play({ do: 'succeed', nth: 0 });
        expectPromisesHeld(scene);
        const expected = scene.submitted.map(({ taskId }) => taskId).filter((id) => !scene.purged.has(id));
        expect([...scene.settled.keys()].toSorted()).toEqual(expected.toSorted());
        expect(scene.manager.snapshot().working).toEqual([]);
        for (const key of KEYS) scene.manager.purge('Widget', key);
        expect(scene.clock.pending, 'no timer is left').toBe(0);
      }),
      { numRuns: 300 },
    );
  });
});
