/**
 * The HTTPS endpoint that the API server asks for container logs. Served are
 * only clients with a certificate of the given authority and of the group that
 * the API server's own certificate names: a certificate of an ordinary user
 * would otherwise read any log past RBAC.
 */
import { access } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { readLog } from './container-log.ts';
import { HOST_ADDRESS } from './pod-addresses.ts';
import type { PodRunner } from './pod-runner.ts';

export interface KubeletServerOptions {
  readonly serving: { readonly certPem: string; readonly keyPem: string; readonly clientCaPem: string };
  readonly runnerOf: (namespace: string, pod: string) => PodRunner | undefined;
  readonly runners: () => Iterable<PodRunner>;
  readonly onError: (error: unknown) => void;
}

const ADMIN_GROUP = 'system:masters';
const NOT_OFFERED = new Set(['exec', 'attach', 'portForward', 'run']);

/** An answer that is an error; the text reaches the user through kubectl. */
class Refusal extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export class KubeletServer {
  readonly #options: KubeletServerOptions;
  readonly #server: Server;

  constructor(options: KubeletServerOptions) {
    this.#options = options;
    const { certPem, keyPem, clientCaPem } = options.serving;
    this.#server = createServer(
      { cert: certPem, key: keyPem, ca: clientCaPem, requestCert: true, rejectUnauthorized: true },
      (request, response) => void this.#answer(request, response),
    );
  }

  /** Resolves with the port. */
  async listen(): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject);
    this.#server.listen({ host: HOST_ADDRESS, port: 0 }, resolve);
    await promise;
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      authorize(request.socket as TLSSocket);
      await this.#route(new URL(request.url ?? '/', 'https://node'), response);
    } catch (error) {
      if (!(error instanceof Refusal) && !response.destroyed) this.#options.onError(error);
      if (response.headersSent) return void response.destroy();
      const code = error instanceof Refusal ? error.code : 500;
      response.writeHead(code, { 'content-type': 'text/plain' });
      response.end(`${error instanceof Error ? error.message : String(error)}\n`);
    }
  }

  async #route(url: URL, response: ServerResponse): Promise<void> {
    const [first = '', ...rest] = url.pathname.split('/').slice(1).map(decodeURIComponent);
    if (first === 'healthz') return void response.end('ok');
    if (first === 'pods') return this.#pods(response);
    if (first === 'containerLogs' && rest.length === 3)
      return this.#logs(rest as [string, string, string], url.searchParams, response);
    if (NOT_OFFERED.has(first))
      throw new Refusal(
        501,
        `the virtual node has no ${first}: its containers are local processes, look at them on this machine`,
      );
    throw new Refusal(404, `the virtual node does not serve ${url.pathname}`);
  }

  #pods(response: ServerResponse): void {
    const items = [...this.#options.runners()].map(({ pod }) => pod);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ apiVersion: 'v1', kind: 'PodList', metadata: {}, items }));
  }

  async #logs(
    [namespace, pod, container]: [string, string, string],
    query: URLSearchParams,
    response: ServerResponse,
  ): Promise<void> {
    const runner = this.#options.runnerOf(namespace, pod);
    if (!runner) throw new Refusal(404, `pod "${pod}" in namespace "${namespace}" is not on this node`);
    const previous = query.get('previous') === 'true';
    const log = runner.log(container, previous);
    if (!log) throw new Refusal(400, withoutLog(runner, container, previous));
    await access(log.path).catch(() => {
      throw new Refusal(404, `the log of container "${container}" in pod "${pod}" is gone`);
    });
    const leaving = new AbortController();
    response.once('close', () => leaving.abort());
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.flushHeaders();
    const wanted = {
      timestamps: query.get('timestamps') === 'true',
      since: since(query),
      tailLines: integer(query, 'tailLines'),
      limitBytes: integer(query, 'limitBytes'),
      follow: query.get('follow') === 'true' ? log.live : undefined,
    };
    for await (const block of readLog(log.path, wanted, leaving.signal))
      if (!response.write(block)) await drained(response, leaving.signal);
    response.end();
  }
}

function authorize(socket: TLSSocket): void {
  const { subject } = socket.getPeerCertificate();
  const groups: unknown = subject?.O;
  if (!(Array.isArray(groups) ? groups : [groups]).includes(ADMIN_GROUP))
    throw new Refusal(403, 'only the API server is served');
}

function withoutLog(runner: PodRunner, container: string, previous: boolean): string {
  const of = `container "${container}" in pod "${runner.pod.metadata.name}"`;
  const record = runner.record(container);
  if (!record) return `${of} does not exist`;
  if (previous) return `previous terminated ${of} not found`;
  const reason = record.state.kind === 'waiting' ? record.state.reason : 'unknown';
  return `${of} is waiting to start: ${reason}`;
}

function since(query: URLSearchParams): number | undefined {
  const seconds = integer(query, 'sinceSeconds');
  if (seconds !== undefined) return Date.now() - 1000 * seconds;
  const time = Date.parse(query.get('sinceTime') ?? '');
  return Number.isNaN(time) ? undefined : time;
}

function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0)
    throw new Refusal(400, `${name} must be a whole number, not "${text}"`);
  return value;
}

function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once('drain', resolve);
  signal.addEventListener('abort', () => resolve(), { once: true });
  return promise;
}
