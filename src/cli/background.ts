/**
 * The same program once more, in the background. The child tells over an IPC
 * channel that it is ready; if it ends before, the end of its log is the reason.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import type { PlaneDirectory } from '../local-cluster/plane-directory.ts';
import type { MessageToParent } from './parent-channel.ts';
import { runSteps } from './progress.ts';
import { UserError } from './user-error.ts';

export interface BackgroundOptions {
  readonly args: readonly string[];
  readonly directory: PlaneDirectory;
}

export async function startInBackground({ args, directory }: BackgroundOptions): Promise<void> {
  await directory.prepare();
  const logFile = directory.log('up');
  await rm(logFile, { force: true });
  await runSteps([
    {
      title: `Start the control plane in the background (log: ${logFile})`,
      run: () => untilReady(args, logFile),
    },
  ]);
}

async function untilReady(args: readonly string[], logFile: string): Promise<void> {
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn(process.execPath, [process.argv[1] ?? '', ...args], {
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  const interrupt = (): void => void child.kill('SIGTERM');
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.on('message', (message: MessageToParent) => {
    if (message.type === 'ready') resolve();
    else reject(new UserError(message.message));
  });
  child.on('error', reject);
  child.on('exit', () => {
    readFile(logFile, 'utf8').then(
      (text) => reject(new Error(`it ended before it was ready. Its log (${logFile}):\n${text}`)),
      reject,
    );
  });
  try {
    await promise;
    child.unref();
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
