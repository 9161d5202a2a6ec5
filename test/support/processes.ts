/** Whether processes live that are not children of the test, which no event tells. */
import { readdir, readFile } from 'node:fs/promises';
import { expect, vi } from 'vitest';

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export async function expectGone(pids: readonly number[], timeoutMs = 5_000): Promise<void> {
  await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), { timeout: timeoutMs, interval: 20 });
}

/** Processes of this machine whose command line contains the text. */
export async function processesNaming(text: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const lines = await Promise.all(
    pids.map(async (pid) => ({ pid, line: await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') })),
  );
  return lines.filter(({ pid, line }) => pid !== process.pid && line.includes(text)).map(({ pid }) => pid);
}
