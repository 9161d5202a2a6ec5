/**
 * The operator as users run it: a process of its own, under the ServiceAccount
 * and the roles that are shipped, never as admin.
 */
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { type Finished, RunningCommand, TASKFLOW } from './command.ts';

export interface LogLine {
  readonly time: string;
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

export interface OperatorStart {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly plugin: string;
  readonly settings?: Readonly<Record<string, string | number | boolean>>;
}

/** Free ports and webhooks off, unless the settings say otherwise: several run side by side. */
const SETTINGS = {
  'metrics.address': '127.0.0.1:0',
  'health.address': '127.0.0.1:0',
  'webhooks.enabled': false,
};

const STOP_GRACE_MS = 10_000;

export class OperatorProcess implements AsyncDisposable {
  readonly #command: RunningCommand;
  readonly #stderr: Readable;
  readonly #lines: LogLine[] = [];
  #rest = '';

  constructor({ kubeconfig, namespace, plugin, settings = {} }: OperatorStart) {
    const pairs = Object.entries({ ...SETTINGS, ...settings }).flatMap(([key, value]) => [
      '--set',
      `${key}=${value}`,
    ]);
    const args = [
      'run',
      `--kubeconfig=${kubeconfig}`,
      `--manager-namespace=${namespace}`,
      `--plugin=${plugin}`,
    ];
    this.#command = new RunningCommand(process.execPath, [TASKFLOW, ...args, ...pairs], {
      env: environment(),
    });
    const { stderr } = this.#command.child;
    if (!stderr) throw new Error('no pipe to the log of the operator');
    this.#stderr = stderr;
    stderr.on('data', (text: string) => this.#read(text));
  }

  get pid(): number {
    return this.#command.child.pid ?? 0;
  }

  get lines(): readonly LogLine[] {
    return this.#lines;
  }

  get finished(): Promise<Finished> {
    return this.#command.finished;
  }

  /** The first line with this message, as soon as it is logged; rejects if the process ends without. */
  async untilLogged(message: string): Promise<LogLine> {
    const ended = this.finished.then((result) => {
      throw new Error(
        `the operator ended with ${result.exitCode} before it logged "${message}":\n${result.stderr}`,
      );
    });
    ended.catch(() => {});
    for (;;) {
      const line = this.#lines.find((each) => each.message === message);
      if (line) return line;
      await Promise.race([once(this.#stderr, 'data'), ended]);
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#command.child.kill(signal);
  }

  /** In order, so that the lease is free for whoever comes next; by force if that does not help. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.signal('SIGCONT');
    this.signal('SIGTERM');
    const timer = setTimeout(() => this.signal('SIGKILL'), STOP_GRACE_MS);
    await this.finished;
    clearTimeout(timer);
  }

  #read(text: string): void {
    const parts = (this.#rest + text).split('\n');
    this.#rest = parts.pop() ?? '';
    for (const part of parts) if (part.startsWith('{')) this.#lines.push(JSON.parse(part) as LogLine);
  }
}

/** What is set for the tests is none of the operator's settings, and it would refuse them. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TASKFLOW_')));
}
