import { describe, expect, it } from 'vitest';
import { ago, endedFlow, NOW } from '../../../test/fixtures/engine-objects.ts';
import { historyLines } from './history-lines.ts';

const HISTORY = [
  endedFlow('old', { startedAt: ago(7200), finishedAt: ago(7190), fromStatus: 'new' }),
  endedFlow('new', { result: 'Failed', error: `sunk\n${'again '.repeat(20)}` }),
];
const lines = (wide: boolean) =>
  historyLines(HISTORY, { now: NOW, wide }).map((line) => line.replaceAll(/ {2,}/g, ' '));

describe('history', () => {
  it('is told from the newest, long errors cut', () => {
    expect(lines(false)).toEqual([
      'FLOW RESULT ENDED DURATION TASKS FROM ERROR',
      expect.stringMatching(/^sail Failed 3m ago 2m 2 - sunk again .*…$/),
      'sail Succeeded 119m ago 10s 2 new',
    ]);
  });

  it('wide has every task', () => {
    expect(lines(true).slice(1, 4)).toEqual([
      expect.stringMatching(/again again\b.*[^…]$/),
      ' load cargo successful 1.2s',
      ' cross ocean successful 99s 3 attempts',
    ]);
  });
});
