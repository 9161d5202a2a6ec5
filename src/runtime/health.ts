/** Named checks behind `/healthz` and `/readyz`, in the form that Kubernetes itself uses. */
import { messageOf } from '../kube/thrown.ts';
import type { Answer, Endpoints } from './http-endpoints.ts';

/** Undefined: fine. Otherwise the reason. */
export type Check = () => string | undefined | Promise<string | undefined>;

export class HealthChecks {
  readonly #live = new Map<string, Check>();
  readonly #ready = new Map<string, Check>();

  /** Not alive: the process should be restarted. */
  addLive(name: string, check: Check): void {
    this.#live.set(name, check);
  }

  /** Not ready: no traffic, but no restart. */
  addReady(name: string, check: Check): void {
    this.#ready.set(name, check);
  }

  endpoints(): Endpoints {
    return {
      '/healthz': (query) => this.#answer('healthz', this.#live, query),
      '/readyz': (query) => this.#answer('readyz', this.#ready, query),
    };
  }

  /** Names and reasons of what is not ready. */
  async notReady(): Promise<string[]> {
    return (await run(this.#ready))
      .filter(({ fault }) => fault !== undefined)
      .map(({ name, fault }) => `${name}: ${fault}`);
  }

  async #answer(path: string, checks: ReadonlyMap<string, Check>, query: URLSearchParams): Promise<Answer> {
    const results = await run(checks);
    const failed = results.some(({ fault }) => fault !== undefined);
    // A failure is always told in full: whoever asks wants to know why.
    if (!failed && !query.has('verbose')) return { body: 'ok' };
    const lines = results.map(({ name, fault }) =>
      fault === undefined ? `[+]${name} ok` : `[-]${name} failed: ${fault}`,
    );
    lines.push(`${path} check ${failed ? 'failed' : 'passed'}`);
    return { status: failed ? 503 : 200, body: `${lines.join('\n')}\n` };
  }
}

async function run(
  checks: ReadonlyMap<string, Check>,
): Promise<{ name: string; fault: string | undefined }[]> {
  return Promise.all(
    [...checks].map(async ([name, check]) => {
      try {
        return { name, fault: await check() };
      } catch (error) {
        return { name, fault: messageOf(error) };
      }
    }),
  );
}
