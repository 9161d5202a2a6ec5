/**
 * Whether a directory holds programs that really run here. Existence is not
 * enough: a truncated file or one for another processor would only show later
 * as a control plane that does not start.
 */
import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { reasonOf, SourceFailedError } from './source.ts';
import { PROGRAM_NAMES, PROGRAMS, type ProgramName } from './versions.ts';

export interface VerifyOptions {
  /** `pinned`: exactly our versions. `any`: whatever the user provides, if it runs. */
  readonly versions: 'pinned' | 'any';
  readonly signal: AbortSignal;
}

const run = promisify(execFile);
/** Generous: the first start reads 100 MB from a disk that may be slow. */
const ANSWER_TIMEOUT_MS = 60_000;
const BUSY_RETRIES = 20;
const BUSY_DELAY_MS = 50;

/** Returns the version of Kubernetes that the programs report. */
export async function verifyPrograms(dir: string, options: VerifyOptions): Promise<string> {
  await refuseMissing(dir);
  // All are awaited even if one fails: the caller may remove the directory next.
  const answers = await Promise.allSettled(PROGRAM_NAMES.map((name) => askVersion(dir, name, options)));
  options.signal.throwIfAborted();
  const failed = answers.find((answer) => answer.status === 'rejected');
  if (failed) throw failed.reason;
  const apiServer = answers[PROGRAM_NAMES.indexOf('kube-apiserver')];
  return (apiServer?.status === 'fulfilled' && /v\d+\.\d+\.\d+\S*/.exec(apiServer.value)?.[0]) || 'unknown';
}

async function refuseMissing(dir: string): Promise<void> {
  const present = await Promise.all(PROGRAM_NAMES.map((name) => isExecutable(join(dir, name))));
  const missing = PROGRAM_NAMES.filter((_, index) => !present[index]);
  if (missing.length > 0) throw new SourceFailedError(`no executable ${missing.join(', ')} in ${dir}`);
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function askVersion(dir: string, name: ProgramName, options: VerifyOptions): Promise<string> {
  const path = join(dir, name);
  const { versionArguments, release } = PROGRAMS[name];
  const answer = await runOnceWritable(path, versionArguments, options.signal);
  if (options.versions === 'pinned' && !mentionsVersion(answer, release)) {
    const firstLine = answer.split('\n', 1)[0] ?? '';
    throw new SourceFailedError(`${path} answers "${firstLine}" instead of ${release}`);
  }
  return answer;
}

/**
 * Starts a program that may just have been written. While another thread of
 * this process is between fork and exec, its child holds a copy of our file
 * descriptor, and the kernel refuses to run a file that is open for writing.
 */
async function runOnceWritable(path: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    try {
      // An empty environment: KUBECONFIG, ETCD_NAME and the like of the user must not matter.
      const { stdout } = await run(path, args, { env: {}, signal, timeout: ANSWER_TIMEOUT_MS });
      return stdout;
    } catch (error) {
      if (!isBusy(error) || attempt === BUSY_RETRIES) {
        throw new SourceFailedError(`${path} does not run: ${howItEnded(error)}`, { cause: error });
      }
      await delay(BUSY_DELAY_MS, undefined, { signal });
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ETXTBSY';
}

function howItEnded(error: unknown): string {
  if (!(error instanceof Error)) return reasonOf(error);
  const { code, signal, stderr } = error as Error & { code?: unknown; signal?: unknown; stderr?: unknown };
  const said = typeof stderr === 'string' && stderr.trim() !== '' ? `: ${reasonOf(stderr)}` : '';
  if (typeof signal === 'string') return `ended by ${signal}${said}`;
  if (typeof code === 'number') return `exit code ${code}${said}`;
  return reasonOf(error);
}

/** etcd prints its version without the `v`; `1.36.3` must not be read out of `1.36.30`. */
function mentionsVersion(answer: string, release: string): boolean {
  const digits = release.slice(1).replaceAll('.', String.raw`\.`);
  return new RegExp(String.raw`(?<![\d.])${digits}(?!\d)`).test(answer);
}
