import { describe, expect, it } from 'vitest';
import type { FlowRow } from '../../resource-managers/flow-table.ts';
import { flowRows } from './flow-rows.ts';

const greet: FlowRow = {
  system: 'greeting',
  kind: 'Greeting',
  flow: 'greet',
  from: ['new'],
  to: ['running'],
  steps: ['say hello', 'wait for answer'],
  onFailure: 'retry from current',
  failureStatus: 'failed',
  maxRetry: 5,
};
const rowOf = (changes: Partial<FlowRow>, wide = false): string[] =>
  flowRows([{ ...greet, ...changes }], { wide })[1] ?? [];

describe('flowRows', () => {
  it('tells a flow in a row', () => {
    expect(rowOf({})).toEqual([
      'greeting',
      'Greeting',
      'greet',
      'new → running',
      'say hello, wait for answer',
      'retry from current (at most 5) → failed',
    ]);
  });

  it('cuts long lists of steps unless wide', () => {
    const steps = Array.from({ length: 20 }, (_, at) => `step ${at}`);
    expect(rowOf({ steps })[4]?.length).toBeLessThanOrEqual(60);
    expect(rowOf({ steps }, true)[4]).toBe(steps.join(', '));
  });

  it.each([
    [{ onFailure: 'Pause' }, 'Pause'],
    [{ onFailure: '' }, '→ failed'],
    [{ onFailure: 'retry over', maxRetry: 0 }, 'retry over → failed'],
  ])('%o is "%s"', (changes, text) => {
    expect(rowOf(changes).at(-1)).toBe(text);
  });

  it('has a question mark where a function chooses the flow', () => {
    expect(rowOf({ from: [], to: ['a', 'b'] })[3]).toBe('? → a, b');
  });
});
