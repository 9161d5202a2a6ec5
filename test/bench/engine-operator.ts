/** The operator that is measured: a process of its own, and what the system says that it costs. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '../../src/local-cluster/ports.ts';
import type { OperatorAccess } from '../support/install-operator.ts';
import { OperatorProcess } from '../support/operator.ts';

const PLUGIN = join(import.meta.dirname, '../fixtures/chain/chain.ts');
const TICKS_PER_SECOND = 100;
const KB_PER_MB = 1024;
const LOOK_MS = 500;

export class MeasuredOperator implements AsyncDisposable {
  readonly #process: OperatorProcess;
  readonly #metrics: string;
  /** By the clock of this process. */
  readonly startedAt: number;

  private constructor(process: OperatorProcess, metrics: string, startedAt: number) {
    this.#process = process;
    this.#metrics = metrics;
    this.startedAt = startedAt;
  }

  static async start(access: OperatorAccess, namespace: string, workers: number): Promise<MeasuredOperator> {
    const [port] = await freePorts(1);
    const address = `127.0.0.1:${port}`;
    const startedAt = performance.now();
    const process = new OperatorProcess({
      ...access,
      plugin: PLUGIN,
      settings: {
        namespaces: namespace,
        'metrics.address': address,
        'controller.maxConcurrentReconciles': workers,
      },
    });
    const operator = new MeasuredOperator(process, `http://${address}/metrics`, startedAt);
    await process.untilLogged('operator runs');
    return operator;
  }

  /** User and system time so far. */
  async cpuMs(): Promise<number> {
    const stat = await readFile(`/proc/${this.#process.pid}/stat`, 'utf8');
    // The name of the program, in parentheses, may contain spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [user = 0, system = 0] = fields.slice(11, 13).map(Number);
    return ((user + system) * 1_000) / TICKS_PER_SECOND;
  }

  async residentMb(): Promise<number> {
    const status = await readFile(`/proc/${this.#process.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / KB_PER_MB;
  }

  /** Sum of a counter of its metrics over all labels. */
  async counter(name: string): Promise<number> {
    const text = await (await fetch(this.#metrics)).text();
    const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`));
    return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  }

  /** Looks seldom enough not to be a part of what it measures. */
  async untilCounted(name: string, count: number): Promise<void> {
    while ((await this.counter(name)) < count) await delay(LOOK_MS);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#process[Symbol.asyncDispose]();
  }
}
