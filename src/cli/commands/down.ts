/** `taskflow down`: ends what `taskflow up` started. */
import type { Command } from 'commander';
import { systemClock } from '../../kube/clock.ts';
import { isHeld, readClaim } from '../../local-cluster/claim.ts';
import { PlaneDirectory } from '../../local-cluster/plane-directory.ts';
import { DATA_DIR_OPTION, dataDir } from '../data-dir.ts';
import { print, seconds } from '../terminal.ts';

const GRACE_MS = 15_000;
const LOOK_EVERY_MS = 50;

export function addDownCommand(program: Command): void {
  program
    .command('down')
    .summary('stop the local control plane')
    .description('Stop the control plane that `taskflow up` runs in this directory. Fine if none is running.')
    .option(...DATA_DIR_OPTION)
    .action(async (options: { dataDir?: string }) => {
      const directory = new PlaneDirectory(dataDir(options.dataDir).path);
      const claim = await readClaim(directory);
      if (!claim) return print(`no control plane is running in ${directory.path}`);
      const began = performance.now();
      process.kill(claim.pid, 'SIGTERM');
      while (await isHeld(claim)) {
        // Killed outright, its reaper still takes the programs with it.
        if (performance.now() - began > GRACE_MS) process.kill(claim.pid, 'SIGKILL');
        await systemClock.sleep(LOOK_EVERY_MS);
      }
      print(`stopped in ${seconds(performance.now() - began)}`);
    });
}
