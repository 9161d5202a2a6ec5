import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  ago,
  condition,
  endedFlow,
  engineObject,
  finished,
  flow,
  NOW,
  parallelFlow,
  storm,
} from '../../../test/fixtures/engine-objects.ts';
import type { EngineObject } from './engine-object.ts';
import { detailLines } from './status-details.ts';

/** Without colours, and with one space between columns. */
function details(status: EngineObject['status'], metadata = {}): string {
  const lines = detailLines(engineObject(status, metadata), NOW).map(stripVTControlCharacters);
  return lines.map((line) => line.trim().replaceAll(/ {2,}/g, ' ')).join('\n');
}

describe('one object at length', () => {
  it('tells the flow task by task, with what has happened', () => {
    const text = details({
      status: 'new',
      observedGeneration: 1,
      operationContext: flow({
        nextAttemptAt: ago(-14),
        deadline: ago(-600),
        interruptions: 2,
        lastError: storm(),
        progress: { percent: 42, message: 'off Iceland', heartbeatAt: ago(3) },
        finished: [finished('load cargo', { attempts: 3, durationMs: 41_000 })],
      }),
      conditions: [condition('Ready', 'False', 'under way')],
    });
    expect(text).toBe(
      [
        'voyage/atlantic in demo (cli.test.taskflow.dev/v1alpha1)',
        'State new',
        'Flow sail, step 2 of 3, began 90s ago id flow-1',
        'Leads to arrived',
        'On failure retry from current, then failed; failures so far: 1 of at most 5',
        'Deadline in 10m',
        'Heartbeat 3s ago',
        'Next attempt in 14s',
        'Interrupted 2 times by restarts of the operator',
        'Last error Storm: waves of ten metres',
        '(task "cross ocean", attempt 1, 14s ago)',
        '',
        '✔ load cargo done 41s 3 attempts',
        '● cross ocean running 12s attempt 2 42% off Iceland',
        '○ unload cargo pending',
        '',
        'Conditions',
        'Ready False Test 60s under way',
      ].join('\n'),
    );
  });

  it('shows the live members of a parallel step', () => {
    expect(details({ status: 'new', operationContext: parallelFlow() })).toContain(
      [
        '✔ weigh anchor done 1.2s',
        '● set sails running',
        '✔ set sail:aft done 1.2s',
        '● set sail:fore running 40s attempt 1',
        '○ set sail:main pending 40s attempt 1 waiting for wind; next attempt in 8s',
        '○ leave pending',
      ].join('\n'),
    );
  });

  const CASES: readonly (readonly [what: string, status: EngineObject['status'], line: string])[] = [
    ['no flow', {}, 'Flow none'],
    [
      'how the last flow ended',
      { operationHistory: [endedFlow('a', { result: 'Failed', error: 'sunk' })] },
      'Last flow sail Failed 3m ago: sunk',
    ],
    [
      'failures in a row',
      { consecutiveFailures: { flow: 'sail', count: 1, nextAttemptAt: ago(-30) } },
      'Failures sail failed once, begins again in 30s',
    ],
    [
      'a pause and how to end it',
      { conditions: [condition('Paused', 'True')] },
      'Paused no task begins until: taskflow resume voyage/atlantic',
    ],
    ['an old look', { status: 'new', observedGeneration: 0 }, 'Spec has changed since'],
    [
      'a cancel',
      { operationContext: flow({ cancelRequested: { by: 'me', at: ago(5), reason: '' } }) },
      'Cancelled by me, 5s ago',
    ],
    [
      'an undoing',
      { operationContext: flow({ compensating: true, undoneFor: 'Canceled' }) },
      'Undone what was done is being undone (Canceled)',
    ],
  ];
  it.each(CASES)('tells %s', (_, status, line) => {
    expect(details(status)).toContain(line);
  });
});
