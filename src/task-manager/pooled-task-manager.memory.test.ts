import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { createTaskManager } from './pooled-task-manager.ts';
import type { TaskManager } from './task-manager.ts';

const BATCH = 1_000;
const BATCHES = 100;
const ALLOWED_GROWTH_BYTES = 5_000_000;

/** Submits a batch, and resolves when the last of it has settled and is collected. */
function runBatch(manager: TaskManager, batch: number): Promise<void> {
  return new Promise((resolve) => {
    let left = BATCH;
    const stop = manager.on('settled', (_kind, _key, taskId) => {
      manager.clean(taskId);
      left--;
      if (left > 0) return;
      stop();
      resolve();
    });
    for (let i = 0; i < BATCH; i++)
      manager.submit({
        taskId: `${batch}-${i}`,
        kind: 'Widget',
        key: `default/${batch}-${i}`,
        flow: 'flow',
        task: 'task',
        timeoutMs: 1_800_000,
        fn: async () => {},
      });
  });
}

function usedHeap(): number {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

describe('an operator that runs for months', () => {
  it('keeps nothing of a hundred thousand tasks that are over', { timeout: 60_000 }, async () => {
    const clock = manualClock();
    const manager = createTaskManager({ clock });
    await runBatch(manager, 0);
    const before = usedHeap();
    for (let batch = 1; batch <= BATCHES; batch++) await runBatch(manager, batch);
    expect(manager.snapshot()).toEqual({ working: [], results: [] });
    expect(clock.pending).toBe(0);
    expect(usedHeap() - before).toBeLessThan(ALLOWED_GROWTH_BYTES);
  });
});
