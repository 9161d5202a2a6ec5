/** The operator as a process of its own, under the rights that an installation gives it, to be killed at will. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type ClusterAccess, grantOperatorAccess } from './operator-access.ts';

export interface OperatorOptions {
  /** Files or packages with kinds, as `--plugin` takes them: files from the working directory on. */
  readonly plugins: readonly string[];
  /** The kinds are installed in it. A cluster of `startTestPlane`, or any that is there for tests only. */
  readonly cluster: ClusterAccess;
  /** Settings of the operator: `{ 'log.verbosity': 1 }`. */
  readonly settings?: Readonly<Record<string, string | number | boolean>>;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

export interface RunningOperator extends AsyncDisposable {
  readonly pid: number | undefined;
  /** What it has logged so far, in all its lives. */
  readonly log: readonly LogLine[];
  /** As a crash: SIGKILL, in the middle of whatever it does. */
  kill(): Promise<void>;
  /** The same operator again, after a crash or in place of the one that runs; resolves when it works. */
  restart(): Promise<void>;
  /** As at the end of a Pod: SIGTERM, and its time to end in order. */
  stop(): Promise<void>;
}

/** Beside others and without webhooks; nobody to elect, so that no lease of a killed one has to run out. */
const SETTINGS = {
  'metrics.address': '127.0.0.1:0',
  'health.address': '127.0.0.1:0',
  'webhooks.enabled': false,
  'leaderElection.enabled': false,
  'engine.strictPlugins': true,
};
const TASKFLOW = fileURLToPath(new URL('../../bin/taskflow.js', import.meta.url));

/** Resolves when it works. */
export async function startOperator(options: OperatorOptions): Promise<RunningOperator> {
  const { kubeconfig, namespace, remove } = await grantOperatorAccess(options.cluster, options.plugins);
  const log: LogLine[] = [];
  const settings = { ...SETTINGS, 'engine.plugins': options.plugins.join(','), ...options.settings };
  const args = [
    'run',
    `--kubeconfig=${kubeconfig}`,
    `--manager-namespace=${namespace}`,
    ...Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]),
  ];
  let life = new Life(args, log);
  const stop = async (): Promise<void> => {
    await life.end('SIGTERM');
    await remove();
  };
  await life.works().catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  return {
    get pid() {
      return life.pid;
    },
    log,
    kill: () => life.end('SIGKILL'),
    async restart() {
      await life.end('SIGTERM');
      life = new Life(args, log);
      await life.works();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** From one start to its end. */
class Life {
  readonly #child: ChildProcess;
  readonly #log: LogLine[];
  readonly #working = Promise.withResolvers<void>();
  readonly #closed: Promise<unknown>;
  #rest = '';
  #text = '';

  constructor(args: readonly string[], log: LogLine[]) {
    this.#log = log;
    // The fourth pipe closes when this process dies, however it dies; the operator then ends as well.
    this.#child = spawn(process.execPath, [TASKFLOW, ...args], {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      env: { ...process.env, TASKFLOW_PARENT_PIPE: '3' },
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    this.#closed = once(this.#child, 'close').finally(() =>
      this.#working.reject(new Error(`the operator ended before it worked:\n${this.#text}`)),
    );
    this.#working.promise.catch(() => {});
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  works(): Promise<void> {
    return this.#working.promise;
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.#child.kill(signal);
    await this.#closed;
  }

  #read(text: string): void {
    this.#text += text;
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('{')) continue;
      const entry = JSON.parse(line) as LogLine;
      this.#log.push(entry);
      if (entry.message === 'operator runs') this.#working.resolve();
    }
  }
}
