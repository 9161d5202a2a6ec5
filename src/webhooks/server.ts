/**
 * The HTTPS end of the webhooks. It is called by the API server and can be
 * reached by every Pod, so each way to hold it up has a limit: bytes, time,
 * connections. A renewed certificate is served to new connections while old
 * ones go on. stop() takes no new requests and lets those under way finish.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { admit, type AdmissionMode } from './admission.ts';
import { type AdmissionReview, MalformedReviewError } from './admission-review.ts';
import { silentLog, type WebhookLog } from './log.ts';
import { ByteBudget, discardBody, withBody } from './request-body.ts';
import { webhookRoute } from './routes.ts';
import type { WebhookKind } from './rules.ts';
import type { KeyPair } from '../kube/certificates.ts';
import type { KubeClient } from '../kube/client.ts';

/** Whoever counts; the route stands for the webhook. */
export interface WebhookObserver {
  started?(route: string): void;
  /** `code` is that of HTTP: a refused object is a 200. */
  finished?(route: string, code: number, ms: number): void;
  /** A rule threw. */
  panicked?(route: string): void;
}

export interface WebhookLimits {
  /** Until the TLS handshake is done. */
  readonly handshakeMs: number;
  readonly headersMs: number;
  /** For a whole request to arrive. */
  readonly requestMs: number;
  readonly connections: number;
  /** Of all bodies that are in memory at a time. */
  readonly bufferedBytes: number;
  /** How long stop() waits for requests under way. */
  readonly drainMs: number;
}

export interface WebhookServerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly certificate: { readonly current: KeyPair; onChange(listener: () => void): () => void };
  readonly kinds: readonly WebhookKind[];
  readonly client: KubeClient;
  readonly bodyLimitBytes?: number;
  /** For one answer; less if the API server says that it will not wait so long. */
  readonly timeBudgetMs?: number;
  readonly limits?: Partial<WebhookLimits>;
  readonly observer?: WebhookObserver;
  readonly log?: WebhookLog;
}

export interface WebhookServer {
  readonly port: number;
  replaceKinds(kinds: readonly WebhookKind[]): void;
  /** Resolves when the last answer is sent and the last connection closed. */
  stop(): Promise<void>;
}

const BODY_LIMIT_BYTES = 7 * 1024 * 1024;
const TIME_BUDGET_MS = 9_000;
/** An answer must also travel. */
const TRAVEL_MS = 250;
/** Longer than the API server keeps idle connections (90 s), so that it never writes into a closing one. */
const KEEP_ALIVE_MS = 120_000;
const LIMITS: WebhookLimits = {
  handshakeMs: 10_000,
  headersMs: 10_000,
  requestMs: 20_000,
  connections: 1_000,
  bufferedBytes: 64 * 1024 * 1024,
  drainMs: 10_000,
};

export async function startWebhookServer(options: WebhookServerOptions): Promise<WebhookServer> {
  const server = new AdmissionServer(options);
  await server.listen();
  return server;
}

interface Route {
  readonly path: string;
  readonly kind: WebhookKind;
  readonly mode: AdmissionMode;
}

/** What goes back: a review, or a line of text that says what was wrong with the request. */
type Reply =
  | { readonly code: 200; readonly review: AdmissionReview }
  | { readonly code: number; readonly text: string; readonly headers?: Readonly<Record<string, string>> };

class AdmissionServer implements WebhookServer {
  readonly #options: WebhookServerOptions;
  readonly #limits: WebhookLimits;
  readonly #log: WebhookLog;
  readonly #server: Server;
  readonly #budget: ByteBudget;
  readonly #unused = new Set<Socket>();
  #routes: ReadonlyMap<string, Route>;
  #stopping: Promise<void> | undefined;
  #forgetCertificate = (): void => {};

  constructor(options: WebhookServerOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#log = options.log ?? silentLog;
    this.#budget = new ByteBudget(this.#limits.bufferedBytes);
    this.#routes = routesOf(options.kinds);
    this.#server = createServer(
      {
        ...tlsOf(options.certificate.current),
        minVersion: 'TLSv1.2',
        handshakeTimeout: this.#limits.handshakeMs,
        headersTimeout: this.#limits.headersMs,
        requestTimeout: this.#limits.requestMs,
        keepAliveTimeout: KEEP_ALIVE_MS,
        // How often Node looks for requests that are too slow.
        connectionsCheckingInterval: Math.min(1_000, this.#limits.headersMs / 2),
      },
      (request, response) => void this.#handle(request, response),
    );
    this.#server.maxConnections = this.#limits.connections;
    this.#server.on('secureConnection', (socket) => this.#opened(socket));
    this.#server.on('error', (error) => this.#log.error('webhook server failed', { error }));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  replaceKinds(kinds: readonly WebhookKind[]): void {
    this.#routes = routesOf(kinds);
  }

  async listen(): Promise<void> {
    const { host, port, certificate } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject);
    this.#server.listen(port, host, resolve);
    await promise;
    this.#server.off('error', reject);
    this.#forgetCertificate = certificate.onChange(() => this.#reload());
    // It may have changed before anybody listened.
    this.#reload();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#forgetCertificate();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeIdleConnections();
    for (const socket of this.#unused) socket.destroy();
    const timer = setTimeout(() => this.#server.closeAllConnections(), this.#limits.drainMs);
    await promise;
    clearTimeout(timer);
  }

  /** Clients open connections in advance; to Node one without a first request is not idle but busy. */
  #opened(socket: TLSSocket): void {
    if (this.#stopping) return void socket.destroy();
    this.#unused.add(socket);
    socket.once('close', () => this.#unused.delete(socket));
  }

  #reload(): void {
    try {
      this.#server.setSecureContext({ ...tlsOf(this.#options.certificate.current), minVersion: 'TLSv1.2' });
    } catch (error) {
      this.#log.error('webhook certificate is not usable; the old one is served on', { error });
    }
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#unused.delete(request.socket);
    const path = pathOf(request);
    const route = this.#routes.get(path);
    const began = performance.now();
    if (route) this.#options.observer?.started?.(path);
    // A client that goes away is no event for a log.
    response.on('error', () => {});
    let code = 500;
    try {
      code = await this.#reply(request, response, route);
    } catch (error) {
      this.#log.error('webhook request failed', { path: route?.path, error });
      code = this.#send(response, { code: 500, text: 'internal error' }, request);
    } finally {
      if (route) this.#options.observer?.finished?.(path, code, performance.now() - began);
    }
  }

  async #reply(
    request: IncomingMessage,
    response: ServerResponse,
    route: Route | undefined,
  ): Promise<number> {
    const limit = this.#options.bodyLimitBytes ?? BODY_LIMIT_BYTES;
    const refused = refusedByHeaders(request, route);
    if (refused || !route) {
      await discardBody(request, limit);
      return this.#send(response, refused ?? { code: 404, text: 'no such webhook' }, request);
    }
    return withBody(request, limit, this.#budget, async (body) => {
      switch (body) {
        case 'cut off':
          return 499;
        case 'too large':
          return this.#send(response, { code: 413, text: `the body is larger than ${limit} bytes` }, request);
        case 'busy': {
          const headers = { 'retry-after': '1' };
          return this.#send(response, { code: 503, text: 'too many requests at a time', headers }, request);
        }
        default:
          return this.#send(response, await this.#admit(route, request, body), request);
      }
    });
  }

  async #admit({ path, kind, mode }: Route, request: IncomingMessage, body: Buffer): Promise<Reply> {
    const review = parseJson(body);
    if (!review) return { code: 400, text: 'the body is not JSON' };
    // Not AbortSignal.timeout: this timer must not outlive the answer.
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(), this.#timeFor(request));
    try {
      const answered = await admit(review.value, kind, mode, {
        client: this.#options.client,
        signal: over.signal,
        log: this.#log,
        onRuleFailure: () => this.#options.observer?.panicked?.(path),
      });
      return { code: 200, review: answered };
    } catch (error) {
      if (error instanceof MalformedReviewError) return { code: 400, text: error.message };
      throw error;
    } finally {
      clearTimeout(timer);
      // Rules that still work for an answer nobody waits for can stop.
      over.abort();
    }
  }

  /** The API server sends along how long it will wait. */
  #timeFor(request: IncomingMessage): number {
    const budget = this.#options.timeBudgetMs ?? TIME_BUDGET_MS;
    const match = /[?&]timeout=(\d+)(ms|s|m)(?:&|$)/.exec(request.url ?? '');
    if (!match) return budget;
    const unit = match[2] === 'ms' ? 1 : match[2] === 's' ? 1_000 : 60_000;
    return Math.max(0, Math.min(budget, Number(match[1]) * unit - TRAVEL_MS));
  }

  #send(response: ServerResponse, reply: Reply, request: IncomingMessage): number {
    if (response.headersSent || response.destroyed) return reply.code;
    const [type, body] =
      'review' in reply
        ? ['application/json', JSON.stringify(reply.review)]
        : ['text/plain; charset=utf-8', `${reply.text}\n`];
    const last = this.#stopping !== undefined || !request.complete;
    response.writeHead(reply.code, {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      'x-content-type-options': 'nosniff',
      ...(last && { connection: 'close' }),
      ...('headers' in reply && reply.headers),
    });
    response.end(body);
    return reply.code;
  }
}

function routesOf(kinds: readonly WebhookKind[]): ReadonlyMap<string, Route> {
  const modes: readonly AdmissionMode[] = ['mutate', 'validate'];
  return new Map(
    kinds.flatMap((kind) =>
      modes.map((mode): [string, Route] => {
        const path = webhookRoute(mode, kind.schema);
        return [path, { path, kind, mode }];
      }),
    ),
  );
}

function refusedByHeaders(request: IncomingMessage, route: Route | undefined): Reply | undefined {
  if (!route) return { code: 404, text: 'no such webhook' };
  if (request.method !== 'POST')
    return { code: 405, text: 'only POST is answered here', headers: { allow: 'POST' } };
  const [type = ''] = (request.headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json')
    return { code: 415, text: 'the content type must be application/json' };
  const encoding = request.headers['content-encoding'];
  return encoding === undefined || encoding === 'identity'
    ? undefined
    : { code: 415, text: 'the body must not be compressed' };
}

function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '';
}

function parseJson(body: Buffer): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) };
  } catch {
    return undefined;
  }
}

function tlsOf({ certPem, keyPem }: KeyPair): { cert: string; key: string } {
  return { cert: certPem, key: keyPem };
}
