import { describe, expect, it } from 'vitest';
import { condition, endedFlow, engineObject, flow, storm } from '../../../test/fixtures/engine-objects.ts';
import type { EngineObject } from './engine-object.ts';
import { type Goal, judge } from './goal.ts';

const ARRIVED: Goal = { state: 'arrived' };
const failed = endedFlow('f2', { result: 'Failed', error: 'sunk' });
const pausing = { failureStrategy: 'Pause', failureStatus: '' } as const;

type Case = readonly [what: string, status: EngineObject['status'], goal: Goal, verdict: string | undefined];
const CASES: readonly Case[] = [
  ['the state', { status: 'arrived' }, ARRIVED, 'reached: is arrived'],
  [
    'the state while a flow runs',
    { phase: 'arrived', operationContext: flow() },
    ARRIVED,
    'reached: is arrived',
  ],
  ['another state', { status: 'new' }, ARRIVED, undefined],
  [
    'a failure that is tried again',
    { status: 'new', operationContext: flow({ lastError: storm() }) },
    ARRIVED,
    undefined,
  ],
  [
    'a flow that waits for the user',
    {
      status: 'new',
      operationContext: flow({ taskStatus: 'failed', failureRule: pausing, lastError: storm() }),
    },
    ARRIVED,
    'lost: its flow "sail" waits for you after task "cross ocean" failed: Storm: waves of ten metres',
  ],
  [
    'a flow that failed since',
    { status: 'new', operationContext: flow(), operationHistory: [failed] },
    'settled',
    'lost: its flow "sail" has ended: Failed: sunk',
  ],
  [
    'a flow that failed before',
    { status: 'docked', observedGeneration: 1, operationHistory: [endedFlow('f1', { result: 'Failed' })] },
    'settled',
    'reached: has settled as docked',
  ],
  ['a failed state', { status: 'failed' }, ARRIVED, 'lost: is failed'],
  [
    'a state that the kind counts as failed',
    { status: 'sunk', conditions: [condition('Degraded', 'True', 'a storm')] },
    'settled',
    'lost: is sunk: a storm',
  ],
  [
    'a failing flow between two tries',
    { status: 'docked', consecutiveFailures: { flow: 'sail', count: 2 } },
    'settled',
    'lost: is docked: sail failed 2 times in a row',
  ],
  ['a spec that was not looked at', { status: 'failed', observedGeneration: 0 }, 'settled', undefined],
  ['a flow', { status: 'arrived', operationContext: flow() }, 'settled', undefined],
  ['no state yet', {}, 'settled', undefined],
];

describe('when a watch is over', () => {
  it.each(CASES)('%s', (_, status, goal, expected) => {
    const verdict = judge(engineObject(status), goal, new Set(['f1']));
    expect(verdict && `${verdict.reached ? 'reached' : 'lost'}: ${verdict.why}`).toBe(expected);
  });
});
