import { describe, expect, it } from 'vitest';
import {
  ago,
  condition,
  engineObject,
  flow,
  graphFlow,
  NOW,
  parallelFlow,
  storm,
} from '../../../test/fixtures/engine-objects.ts';
import { changeLine } from './change-line.ts';
import type { EngineObject } from './engine-object.ts';
import { statusRows } from './status-table.ts';

const VIEW = { now: NOW, wide: false, withNamespace: false };
const LONG = 'a very long story '.repeat(10).trim();

const heartbeat = { percent: 42.7, message: 'off Iceland', heartbeatAt: ago(1) };
const CASES: readonly (readonly [what: string, status: EngineObject['status'], row: readonly string[]])[] = [
  ['nothing known', {}, ['-', '-', '-', '-', '-', '-', '-', '-']],
  ['state in status', { status: 'arrived' }, ['arrived', '-', '-', '-', '-', '-', '-', '-']],
  ['state in phase', { phase: 'Open' }, ['Open', '-', '-', '-', '-', '-', '-', '-']],
  [
    'paused',
    { status: 'arrived', conditions: [condition('Paused', 'True')] },
    ['arrived (paused)', '-', '-', '-', '-', '-', '-', '-'],
  ],
  [
    'a running task that failed before',
    { status: 'new', operationContext: flow({ progress: heartbeat, lastError: storm() }) },
    ['new', 'sail', 'cross ocean', '2/3', '2', '42%', '12s', 'Storm: waves of ten metres'],
  ],
  [
    'a task that waits',
    {
      status: 'new',
      operationContext: flow({ waitingFor: 'wind', nextAttemptAt: ago(-5), lastError: storm() }),
    },
    ['new', 'sail', 'cross ocean', '2/3', '2', '-', '12s', 'waiting for wind (next attempt in 5s)'],
  ],
  [
    'an error that its task has got over',
    { status: 'new', operationContext: flow({ lastError: storm({ task: 'load cargo' }) }) },
    ['new', 'sail', 'cross ocean', '2/3', '2', '-', '12s', '-'],
  ],
  [
    'a parallel step',
    { status: 'new', operationContext: parallelFlow() },
    [
      'new',
      'sail',
      'set sails (2 live)',
      '2/3',
      '2',
      '-',
      '12s',
      'set sail:main waits for wind (next attempt in 8s)',
    ],
  ],
  [
    'a graph',
    { status: 'new', operationContext: graphFlow() },
    ['new', 'sail', 'east (+1)', '1/4', '2', '-', '12s', '-'],
  ],
  [
    'a flow that keeps failing',
    { status: 'failed', consecutiveFailures: { flow: 'sail', count: 3, nextAttemptAt: ago(-100) } },
    ['failed', '-', '-', '-', '-', '-', '-', 'sail failed 3 times in a row (next attempt in 100s)'],
  ],
  [
    'degraded',
    { status: 'failed', conditions: [condition('Degraded', 'True', 'the ship has sunk')] },
    ['failed', '-', '-', '-', '-', '-', '-', 'the ship has sunk'],
  ],
  [
    'a long error is cut',
    { status: 'new', operationContext: flow({ lastError: storm({ message: LONG }) }) },
    ['new', 'sail', 'cross ocean', '2/3', '2', '-', '12s', `${`Storm: ${LONG}`.slice(0, 59)}…`],
  ],
];

describe('the table of objects', () => {
  it.each(CASES)('%s', (_, status, row) => {
    expect(statusRows([engineObject(status)], VIEW)[1]?.slice(1)).toEqual(row);
  });

  it('wide cuts nothing and has the message of the heartbeat; the namespace comes first', () => {
    const object = engineObject({
      operationContext: flow({ progress: heartbeat, lastError: storm({ message: LONG }) }),
    });
    const [titles, row] = statusRows([object], { ...VIEW, wide: true, withNamespace: true });
    expect(titles?.slice(0, 2)).toEqual(['NAMESPACE', 'KIND/NAME']);
    expect(row?.slice(0, 2)).toEqual(['demo', 'voyage/atlantic']);
    expect(row?.slice(-3)).toEqual(['42% off Iceland', '12s', `Storm: ${LONG}`]);
  });
});

describe('the line of a change', () => {
  it.each([
    [{ status: 'arrived' }, 'voyage/atlantic  arrived'],
    [
      { status: 'new', operationContext: flow({ progress: heartbeat, lastError: storm() }) },
      'voyage/atlantic  new  sail  2/3 cross ocean  running  attempt 2  42% off Iceland  Storm: waves of ten metres',
    ],
    [
      { status: 'new', operationContext: flow({ attempt: 1, waitingFor: 'wind', nextAttemptAt: ago(-5) }) },
      'voyage/atlantic  new  sail  2/3 cross ocean  running  waiting for wind',
    ],
  ])('%#', (status, line) => {
    expect(changeLine(engineObject(status), { withNamespace: false })).toBe(line);
  });
});
