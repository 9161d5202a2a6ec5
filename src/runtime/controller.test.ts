import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { recordingLogger } from '../../test/support/recording-logger.ts';
import { TooManyRequests } from '../kube/errors.ts';
import {
  Controller,
  type ControllerOptions,
  type Enqueue,
  type Reconcile,
  TerminalError,
} from './controller.ts';
import { createMetrics } from './metrics.ts';

function createController(reconcile: Reconcile, options: Partial<ControllerOptions> = {}) {
  const clock = manualClock();
  const logger = recordingLogger();
  const metrics = createMetrics({ processMetrics: false });
  let enqueue: Enqueue = () => {};
  const controller = new Controller({
    name: 'widgets',
    reconcile,
    log: logger.log,
    metrics: metrics.forController('widgets'),
    clock,
    queue: { random: () => 0.5 },
    ...options,
  }).source((into) => {
    enqueue = into;
    return () => (enqueue = () => {});
  });
  controller.start();
  const metric = async (name: string): Promise<string | undefined> =>
    (await metrics.scrape()).body.split('\n').find((line) => line.startsWith(name));
  return { clock, controller, logger, metric, enqueue: (key: string) => enqueue(key) };
}

describe('Controller', () => {
  it('reconciles what a source names, and again what is asked for later', async () => {
    const seen: string[] = [];
    const { clock, controller, metric, enqueue } = createController(async (key) => {
      seen.push(key);
      return seen.length === 1 ? { requeueAfterMs: 500 } : undefined;
    });
    enqueue('ns/a');
    await clock.advance(499);
    expect(seen).toEqual(['ns/a']);
    await clock.advance(1);
    expect(seen).toEqual(['ns/a', 'ns/a']);
    expect(
      await metric('controller_runtime_reconcile_total{controller="widgets",result="requeue_after"}'),
    ).toMatch(/ 1$/);
    await controller.stop();
  });

  it('tries a failure again with growing delays, logs it with its key, and goes on with others', async () => {
    const seen: string[] = [];
    const { clock, controller, logger, metric, enqueue } = createController(async (key) => {
      seen.push(key);
      if (key === 'bad') throw new Error('password=hunter2 refused');
    });
    enqueue('bad');
    enqueue('good');
    await clock.advance(40);
    expect(seen.filter((key) => key === 'bad')).toHaveLength(4);
    expect(seen).toContain('good');
    const line = logger.lines.find(({ message }) => message === 'reconcile failed');
    expect(line).toMatchObject({ level: 'error', controller: 'widgets', object: 'bad', delayMs: 5 });
    expect(JSON.stringify(logger.lines)).not.toContain('hunter2');
    expect(await metric('controller_runtime_reconcile_errors_total')).toMatch(/ 4$/);
    await controller.stop();
  });

  it.each([
    ['a text', () => Promise.reject('boom')],
    ['nothing', () => Promise.reject(undefined)],
    [
      'an error before its first await',
      () => {
        throw new Error('at once');
      },
    ],
  ])('survives a reconcile that throws %s', async (_what, reconcile) => {
    const { clock, controller, metric, enqueue } = createController(reconcile);
    enqueue('a');
    await clock.advance(1);
    expect(await metric('controller_runtime_reconcile_errors_total')).toMatch(/ 1$/);
    await controller.stop();
  });

  it('does not try again what cannot succeed', async () => {
    let tries = 0;
    const { clock, controller, metric, enqueue } = createController(async () => {
      tries++;
      throw new TerminalError('spec is nonsense');
    });
    enqueue('a');
    await clock.advance(3_600_000);
    expect(tries).toBe(1);
    expect(await metric('controller_runtime_terminal_reconcile_errors_total')).toMatch(/ 1$/);
    await controller.stop();
  });

  it('waits as long as the server asks', async () => {
    let tries = 0;
    const { clock, controller, enqueue } = createController(async () => {
      if (tries++ === 0) throw new TooManyRequests({ verb: 'get', resource: 'pods' }, 429, {}, 9_000);
    });
    enqueue('a');
    await clock.advance(8_999);
    expect(tries).toBe(1);
    await clock.advance(1);
    expect(tries).toBe(2);
    await controller.stop();
  });

  it('a reconcile that ignores its time loses its worker, but its key stays taken', async () => {
    const release = Promise.withResolvers<void>();
    const seen: string[] = [];
    const { clock, controller, metric, enqueue } = createController(
      async (key) => {
        seen.push(key);
        if (key === 'stuck') await release.promise;
      },
      { workers: 1, timeoutMs: 1_000 },
    );
    enqueue('stuck');
    await clock.advance(0);
    enqueue('stuck');
    enqueue('other');
    await clock.advance(1_000);
    expect(seen).toEqual(['stuck', 'other']);
    expect(await metric('controller_runtime_reconcile_timeouts_total')).toMatch(/ 1$/);
    release.resolve();
    await clock.advance(0);
    expect(seen).toEqual(['stuck', 'other', 'stuck']);
    await controller.stop();
  });

  it('stops: what runs is told and waited for, nothing new begins', async () => {
    const ended: string[] = [];
    const { clock, controller, enqueue } = createController(async (key, { signal }) => {
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      ended.push(key);
    });
    enqueue('a');
    await clock.advance(0);
    await controller.stop();
    enqueue('b');
    expect(ended).toEqual(['a']);
  });
});
