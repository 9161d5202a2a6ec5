import { describe, expect, it } from 'vitest';
import { scheduleByNeeds, topologicalOrder } from './graph-scheduler.ts';
import { finishedFlow, withFlow } from './history.ts';
import { applyMergePatch, mergePatch } from './merge-patch.ts';
import type { FinishedFlow, OperationContext } from './operation-context.ts';
import { taskName } from './task-name.ts';

describe('names of tasks', () => {
  it.each([
    ['createOBServerPVC', 'create observer pvc'],
    ['checkAndCreateNs', 'check and create ns'],
    ['waitOBZoneBootstrapReady', 'wait obzone bootstrap ready'],
    ['sayHello', 'say hello'],
    ['bootstrap', 'bootstrap'],
  ])('%s is %s', (key, name) => {
    expect(taskName(key)).toBe(name);
  });
});

describe('a merge patch', () => {
  it.each([
    [{ a: 1 }, { a: 1 }, undefined],
    [{ a: 1 }, { a: 2 }, { a: 2 }],
    [{ a: 1, b: 2 }, { a: 1 }, { b: null }],
    [{ a: { b: 1, c: 2 } }, { a: { b: 1, c: 3 } }, { a: { c: 3 } }],
    [{ a: [1, 2] }, { a: [1, 3] }, { a: [1, 3] }],
    [{ a: [{ b: 1 }] }, { a: [{ b: 1 }] }, undefined],
    [{ a: { b: 1 } }, { a: 7 }, { a: 7 }],
    [{}, { a: undefined }, undefined],
  ])('of %j to %j is %j', (before, after, patch) => {
    expect(mergePatch(before, after)).toEqual(patch);
    expect(mergePatch(applyMergePatch(before, patch ?? {}), after)).toBeUndefined();
  });
});

describe('a graph', () => {
  const nodes = [
    { id: 'd', needs: ['b', 'c'] },
    { id: 'a' },
    { id: 'b', needs: ['a'] },
    { id: 'c', needs: ['a'] },
  ];
  const next = scheduleByNeeds();

  it.each([
    [{}, { start: ['a'], skip: [] }],
    [{ a: 'live' }, { start: [], skip: [] }],
    [{ a: 'successful' }, { start: ['b', 'c'], skip: [] }],
    [
      { a: 'successful', b: 'successful', c: 'live' },
      { start: [], skip: [] },
    ],
    [
      { a: 'successful', b: 'failed', c: 'live' },
      { start: [], skip: ['d'] },
    ],
    [{ a: 'failed' }, { start: [], skip: ['b', 'c', 'd'], done: 'failed' }],
    [
      { a: 'successful', b: 'successful', c: 'successful', d: 'successful' },
      { start: [], skip: [], done: 'successful' },
    ],
    [
      { a: 'successful', b: 'failed', c: 'successful', d: 'skipped' },
      { start: [], skip: [], done: 'failed' },
    ],
  ] as const)('where nodes are %j goes on with %j', (states, decision) => {
    const { skip, ...rest } = next(nodes, states, false, {});
    expect({ ...rest, skip: skip.toSorted() }).toEqual(decision);
  });

  it('starts no more than it may at a time', () => {
    expect(scheduleByNeeds(1)(nodes, { a: 'successful' }, false, {}).start).toEqual(['b']);
    expect(scheduleByNeeds(1)(nodes, { a: 'successful', b: 'live' }, false, {}).start).toEqual([]);
  });

  it('has an order, or says why not', () => {
    expect(topologicalOrder(nodes)).toEqual(['a', 'b', 'c', 'd']);
    expect(() => topologicalOrder([{ id: 'a', needs: ['x'] }])).toThrow(
      'node "a" needs "x", which is not in the graph',
    );
    expect(() =>
      topologicalOrder([
        { id: 'a', needs: ['b'] },
        { id: 'b', needs: ['a'] },
      ]),
    ).toThrow('in a circle');
    expect(() => topologicalOrder([{ id: 'a' }, { id: 'a' }])).toThrow('same id');
  });
});

describe('the history', () => {
  const context: OperationContext = {
    name: 'work',
    tasks: ['a'],
    task: 'a',
    idx: 1,
    taskStatus: 'failed',
    taskId: '',
    targetStatus: 'done',
    failureRule: { failureStrategy: '', failureStatus: '' },
    lastError: { task: 'a', attempt: 3, reason: 'E', message: 'x'.repeat(1_000), at: '', retryable: false },
    attempt: 3,
  };

  it('names the task that failed and the cause', () => {
    const flow = finishedFlow(context, 'Failed', 0);
    expect(flow.tasks).toMatchObject([{ task: 'a', attempts: 3, result: 'failed' }]);
    expect(flow.error?.length).toBeLessThanOrEqual(256);
  });

  it('keeps the last ten, and never more than 16 KiB', () => {
    let history: FinishedFlow[] = [];
    for (let n = 0; n < 15; n++)
      history = withFlow(history, { ...finishedFlow(context, 'Failed', 0), flowId: `${n}` });
    expect(history.map(({ flowId }) => flowId)).toEqual([
      '14',
      '13',
      '12',
      '11',
      '10',
      '9',
      '8',
      '7',
      '6',
      '5',
    ]);
    const long = { ...finishedFlow(context, 'Failed', 0), error: 'y'.repeat(6_000) };
    for (let n = 0; n < 5; n++) history = withFlow(history, long);
    expect(history.length).toBeGreaterThan(0);
    expect(JSON.stringify(history).length).toBeLessThanOrEqual(16 * 1024);
  });
});
