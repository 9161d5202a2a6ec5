import { describe, expect, it } from 'vitest';
import { askedCompletion, askedFailure, parseDuration } from './annotations.ts';

const annotated = (
  annotations: Record<string, string>,
): { metadata: { annotations: Record<string, string> } } => ({
  metadata: { annotations },
});

describe('annotations of a Pod', () => {
  it('ask for a failure by name', () => {
    expect(askedFailure(annotated({ 'virtual-node.taskflow.dev/fail': 'ErrImagePull' }))).toBe(
      'ErrImagePull',
    );
    expect(askedFailure(annotated({ 'virtual-node.taskflow.dev/fail': 'errimagepull' }))).toBeUndefined();
    expect(askedFailure({})).toBeUndefined();
  });

  it('ask for an end, successful unless told otherwise', () => {
    const after = { 'virtual-node.taskflow.dev/complete-after': '2s' };
    expect(askedCompletion(annotated(after))).toEqual({ afterMs: 2000, exitCode: 0 });
    expect(askedCompletion(annotated({ ...after, 'virtual-node.taskflow.dev/exit-code': '3' }))).toEqual({
      afterMs: 2000,
      exitCode: 3,
    });
    expect(
      askedCompletion(annotated({ ...after, 'virtual-node.taskflow.dev/exit-code': 'x' }))?.exitCode,
    ).toBe(1);
    expect(askedCompletion(annotated({ 'virtual-node.taskflow.dev/exit-code': '3' }))).toBeUndefined();
  });

  it.each([
    ['500ms', 500],
    ['2s', 2000],
    ['1m30s', 90_000],
    ['0s', 0],
    ['1.5h', 5_400_000],
    ['', undefined],
    ['2', undefined],
    ['2 s', undefined],
  ])('read %j as %s ms', (text, ms) => expect(parseDuration(text)).toBe(ms));
});
