import { describe, expect, it } from 'vitest';
import { LineSplitter, logLine, MAX_LINE_BYTES, nanoTimestamp, shownLine } from './log-format.ts';

const text = (lines: { text: Buffer; part: boolean }[]): string[] =>
  lines.map((line) => `${line.part ? 'P' : 'F'} ${line.text.toString()}`);

describe('output of a container', () => {
  it('is cut at line ends, wherever the chunks end', () => {
    const splitter = new LineSplitter();
    expect(text(splitter.push(Buffer.from('one\ntw')))).toEqual(['F one']);
    expect(text(splitter.push(Buffer.from('o\n\nthree')))).toEqual(['F two', 'F ']);
    expect(text(splitter.end())).toEqual(['F three']);
    expect(splitter.end()).toEqual([]);
  });

  it('is kept in parts where a line is very long', () => {
    const splitter = new LineSplitter();
    const [first, ...rest] = splitter.push(Buffer.from(`${'x'.repeat(MAX_LINE_BYTES + 3)}\n`));
    expect(first).toMatchObject({ part: true, text: { length: MAX_LINE_BYTES } });
    expect(text(rest)).toEqual(['F xxx']);
  });
});

describe('a stored line', () => {
  const stored = logLine(
    '2026-01-02T03:04:05.678901000Z',
    'stderr',
    Buffer.from('two  words'),
    false,
  ).subarray(0, -1);

  it('has the format of container runtimes', () => {
    expect(stored.toString()).toBe('2026-01-02T03:04:05.678901000Z stderr F two  words');
    expect(nanoTimestamp(Date.parse('2026-01-02T03:04:05.678Z') + 0.25)).toBe(
      '2026-01-02T03:04:05.678250000Z',
    );
  });

  it('is shown as it was written, on demand with its time', () => {
    expect(shownLine(stored, { timestamps: false })?.toString()).toBe('two  words\n');
    expect(shownLine(stored, { timestamps: true })?.toString()).toBe(
      '2026-01-02T03:04:05.678901000Z two  words\n',
    );
  });

  it('is left out before the wanted time', () => {
    const at = Date.parse('2026-01-02T03:04:05.678Z');
    expect(shownLine(stored, { timestamps: false, since: at })).toBeDefined();
    expect(shownLine(stored, { timestamps: false, since: at + 1 })).toBeUndefined();
  });

  it('runs on into the next where it is a part', () => {
    const part = logLine('2026-01-02T03:04:05.678901000Z', 'stdout', Buffer.from('begin '), true).subarray(
      0,
      -1,
    );
    expect(shownLine(part, { timestamps: false })?.toString()).toBe('begin ');
  });
});
