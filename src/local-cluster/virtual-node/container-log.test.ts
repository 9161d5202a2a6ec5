import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ContainerLog,
  dropOldLogs,
  loggedRuns,
  logPath,
  logTail,
  type LogQuery,
  readLog,
} from './container-log.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'container-log-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function shown(log: ContainerLog, query: Partial<LogQuery> = {}): Promise<string> {
  let all = '';
  for await (const block of readLog(log.path, { timestamps: false, ...query }, AbortSignal.timeout(5000)))
    all += block.toString();
  return all;
}

describe('the log of a container', () => {
  it('gives back what the process wrote', async () => {
    const log = new ContainerLog(logPath(dir, 0));
    const output = new PassThrough();
    const recorded = log.record('stdout', output);
    output.write('hello\nwor');
    output.end('ld');
    await recorded;
    log.say('stderr', 'bye');
    log.close();
    expect(await shown(log)).toBe('hello\nworld\nbye\n');
  });

  it('is read from its end', async () => {
    const log = new ContainerLog(logPath(dir, 0));
    for (let line = 1; line <= 5000; line++) log.say('stdout', `line ${line} ${'x'.repeat(40)}`);
    log.close();
    expect((await shown(log, { tailLines: 2 })).split('\n').map((line) => line.slice(0, 9))).toEqual([
      'line 4999',
      'line 5000',
      '',
    ]);
    expect((await shown(log, { tailLines: 3000 })).split('\n')).toHaveLength(3001);
    expect((await shown(log, { tailLines: 9000 })).split('\n')).toHaveLength(5001);
    expect(await shown(log, { tailLines: 0 })).toBe('');
    expect(await shown(log, { limitBytes: 6 })).toBe('line 1');
    expect(await logTail(log.path, 1, 3)).toBe('xx\n');
  });

  it('is followed to the end of the container', async () => {
    const log = new ContainerLog(logPath(dir, 0));
    log.say('stdout', 'one');
    const blocks = readLog(log.path, { timestamps: false, follow: log }, AbortSignal.timeout(5000));
    expect((await blocks.next()).value?.toString()).toBe('one\n');
    const next = blocks.next();
    log.say('stdout', 'two');
    expect((await next).value?.toString()).toBe('two\n');
    const end = blocks.next();
    log.close();
    expect((await end).done).toBe(true);
  });

  it('is let go by a follower who leaves', async () => {
    const log = new ContainerLog(logPath(dir, 0));
    const leaving = new AbortController();
    const end = readLog(log.path, { timestamps: false, follow: log }, leaving.signal).next();
    leaving.abort();
    expect((await end).done).toBe(true);
    log.close();
  });

  it('is kept for the present run and the one before', async () => {
    for (const run of [0, 1, 2, 10]) new ContainerLog(logPath(dir, run)).close();
    await dropOldLogs(dir, 11);
    expect(await loggedRuns(dir)).toEqual([10]);
    expect(await loggedRuns(join(dir, 'absent'))).toEqual([]);
  });
});
