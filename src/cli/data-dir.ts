/** Where a local control plane lives when the user names no directory. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

export interface DataDir {
  readonly path: string;
  /** Only a directory that the user named is kept after the control plane stops. */
  readonly kept: boolean;
}

export const DATA_DIR_OPTION = [
  '--data-dir <dir>',
  'directory of the control plane; its state is kept there (default: one that is emptied at every start)',
] as const;

export function dataDir(named: string | undefined, env: NodeJS.ProcessEnv = process.env): DataDir {
  const chosen = named ?? env['TASKFLOW_DATA_DIR'];
  if (chosen !== undefined) return { path: resolve(chosen), kept: true };
  const state = env['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state');
  return { path: join(state, 'taskflow', 'local'), kept: false };
}
