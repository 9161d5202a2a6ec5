import { readdir } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { runCommand } from '../support/command.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

describe('npm run demo', () => {
  it('tells its stories in under a minute, exits 0 and leaves nothing behind', async () => {
    await using dir = await temporaryDirectory();
    const began = performance.now();
    const demo = await runCommand('npm', ['run', 'demo'], { env: { ...process.env, TMPDIR: dir.path } });
    // The verdict of `taskflow watch` is for people, so it is not in the output.
    expect(demo).toMatchObject({ exitCode: 0, stderr: '✔ rocket/apollo is flying\n' });
    expect(performance.now() - began).toBeLessThan(60_000);
    expect(demo.stdout).toContain('lift-off');
    expect(demo.stdout).toMatch(/job\.batch\/broken\s+Failed/);
    expect(demo.stdout).toMatch(/TaskInterrupted .*"fill tanks"/);
    expect((await readdir(dir.path)).filter((name) => name.startsWith('taskflow'))).toEqual([]);
  });

  it('names the stories when asked for one that is not there', async () => {
    const demo = await runCommand('npm', ['run', 'demo', '--', 'no-such-story']);
    expect(demo.exitCode).toBe(1);
    expect(demo.stderr).toContain('no story named no-such-story; there are: job, flow');
  });
});
