import { describe, expect, it } from 'vitest';
import { isSchedulable } from './scheduler.ts';

describe('a Pod without a node', () => {
  const spec = { containers: [] };

  it('is bound', () => expect(isSchedulable({ spec }, {})).toBe(true));

  it('is left alone while it is gated or deleted', () => {
    expect(isSchedulable({ spec: { ...spec, schedulingGates: [{ name: 'quota' }] } }, {})).toBe(false);
    expect(isSchedulable({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' }, spec }, {})).toBe(false);
  });

  it('waits for a cordoned node, unless it tolerates that', () => {
    const cordoned = { spec: { unschedulable: true } };
    expect(isSchedulable({ spec }, cordoned)).toBe(false);
    const tolerations = [
      { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
    ];
    expect(isSchedulable({ spec: { ...spec, tolerations } }, cordoned)).toBe(true);
    const others = [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }];
    expect(isSchedulable({ spec: { ...spec, tolerations: others } }, cordoned)).toBe(false);
  });
});
