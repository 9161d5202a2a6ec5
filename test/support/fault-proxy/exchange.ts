/**
 * One request on its way through the proxy and back, with the fault that was
 * decided for it. Bodies are streamed both ways. Each side that goes away
 * takes the other along, except where a fault says that the client must not
 * notice.
 */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { type Agent, request as httpsRequest } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { EventLimit } from './event-limit.ts';
import type { DecidingFault, FaultAction, ProxiedRequest, Verdict } from './faults.ts';
import { expiredStatus, statusObject } from './status-object.ts';

export interface Upstream {
  readonly target: URL;
  readonly agent: Agent;
  /** Breaks the client's connection, so that it gets a reset. */
  readonly resetClient: (request: IncomingMessage) => void;
}

type Fault<Kind extends FaultAction['kind']> = Extract<DecidingFault, { kind: Kind }>;

/** Not to be passed on: they speak about one of the two connections only. */
const CONNECTION_HEADERS = new Set(['connection', 'keep-alive', 'proxy-connection', 'upgrade', 'expect']);

export class Exchange {
  readonly request: ProxiedRequest;
  readonly #incoming: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #upstream: Upstream;
  readonly #onStatus: (status: number) => void;
  #forwarded: ClientRequest | undefined;
  /** From here on, what happens upstream is none of the client's business. */
  #released = false;

  constructor(
    request: ProxiedRequest,
    incoming: IncomingMessage,
    response: ServerResponse,
    upstream: Upstream,
    onStatus: (status: number) => void,
  ) {
    this.request = request;
    this.#incoming = incoming;
    this.#response = response;
    this.#upstream = upstream;
    this.#onStatus = onStatus;
    // The API server's own date is passed on, or none.
    response.sendDate = false;
    response.on('error', () => undefined);
    response.once('close', () => {
      if (!response.writableFinished) this.#release();
    });
  }

  async run({ delayMs, fault }: Verdict): Promise<void> {
    if (delayMs > 0) await this.#wait(delayMs);
    if (this.#response.destroyed) return;
    if (fault) this.#suffer(fault);
    else this.#forward((answer) => this.#relay(answer));
  }

  /** Whether the client has got headers and waits for more. */
  get streaming(): boolean {
    return this.#response.headersSent && !this.#response.writableEnded;
  }

  /** Ends a stream that has begun: broken off without its last chunk, or properly. */
  drop(clean = false): void {
    this.#release();
    if (clean) this.#response.end();
    // Not a reset: events that were passed on before must arrive.
    else this.#incoming.socket.destroySoon();
  }

  /** Nothing more reaches the client, and its connection stays open. */
  silence(): void {
    this.#release();
  }

  async #wait(ms: number): Promise<void> {
    const gone = new AbortController();
    this.#response.once('close', () => gone.abort());
    await delay(ms, undefined, { signal: gone.signal }).catch(() => undefined);
  }

  #suffer(fault: DecidingFault): void {
    switch (fault.kind) {
      case 'status':
        return this.#refuse(fault);
      case 'reset':
        return fault.when === 'before' ? this.#reset() : this.#forward(() => this.#reset());
      case 'half-open':
        return this.#goSilent(fault);
      case 'drop-watch':
        return this.#forward((answer) => this.#dropLater(answer, fault));
      case 'watch-gone':
        return this.#sayGone();
    }
  }

  #refuse(fault: Fault<'status'>): void {
    const seconds = fault.retryAfterSeconds ?? (fault.code === 429 ? 1 : undefined);
    const status = statusObject(
      { ...fault, ...(seconds !== undefined && { retryAfterSeconds: seconds }) },
      this.request,
    );
    const body = JSON.stringify(status);
    // Read to its end, or the connection could not be used again.
    this.#incoming.resume();
    this.#onStatus(fault.code);
    this.#response.writeHead(fault.code, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(seconds !== undefined && { 'retry-after': String(seconds) }),
    });
    this.#response.end(body);
  }

  #sayGone(): void {
    this.#onStatus(200);
    this.#response.writeHead(200, { 'content-type': 'application/json' });
    this.#response.end(`${JSON.stringify({ type: 'ERROR', object: expiredStatus(this.request) })}\n`);
  }

  #goSilent(fault: Fault<'half-open'>): void {
    if (this.request.watch) {
      this.#forward((answer) => this.#relayEvents(answer, fault.afterEvents ?? 0, () => this.silence()));
    } else if (fault.when === 'after') {
      this.#forward(() => this.silence());
    } else {
      this.#incoming.resume();
    }
  }

  #dropLater(answer: IncomingMessage, { afterMs, afterEvents, clean }: Fault<'drop-watch'>): void {
    const drop = (): void => this.drop(clean);
    if (afterMs !== undefined) {
      const timer = setTimeout(drop, afterMs);
      this.#response.once('close', () => clearTimeout(timer));
    }
    this.#relayEvents(answer, afterEvents ?? (afterMs === undefined ? 0 : Infinity), drop);
  }

  #reset(): void {
    this.#release();
    this.#upstream.resetClient(this.#incoming);
  }

  #release(): void {
    this.#released = true;
    this.#forwarded?.destroy();
  }

  #forward(onAnswer: (answer: IncomingMessage) => void): void {
    const { target, agent } = this.#upstream;
    const forwarded = httpsRequest(target, {
      agent,
      method: this.request.method,
      path: this.#incoming.url,
      headers: endToEndHeaders(this.#incoming.rawHeaders),
    });
    // An API server that is gone looks the same as without a proxy: the connection breaks.
    const onFailure = (): void => {
      if (!this.#released) this.#reset();
    };
    forwarded.on('error', onFailure);
    forwarded.once('response', (answer) => {
      answer.on('error', onFailure);
      this.#onStatus(answer.statusCode ?? 0);
      onAnswer(answer);
    });
    this.#forwarded = forwarded;
    this.#incoming.pipe(forwarded);
  }

  #relay(answer: IncomingMessage): void {
    this.#startResponse(answer);
    // Registered before pipe's own listener, which ends the response.
    answer.once('end', () => this.#response.addTrailers(headerPairs(answer.rawTrailers)));
    answer.pipe(this.#response);
  }

  #relayEvents(answer: IncomingMessage, limit: number, onLimit: () => void): void {
    this.#startResponse(answer);
    const events = new EventLimit(limit);
    // At its end, every event that it let through has been written to the response.
    events.once('end', () => (events.reached ? onLimit() : this.#response.end()));
    events.pipe(this.#response, { end: false });
    answer.pipe(events);
  }

  #startResponse(answer: IncomingMessage): void {
    // The chunks are made anew: how the answer was cut is known here only.
    const headers = endToEndHeaders(answer.rawHeaders, 'transfer-encoding');
    this.#response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', headers);
    // A watch without events must still see that it has begun.
    this.#response.flushHeaders();
  }
}

export function headerPairs(rawHeaders: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    pairs.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '']);
  return pairs;
}

function endToEndHeaders(rawHeaders: readonly string[], ...without: readonly string[]): string[] {
  return headerPairs(rawHeaders)
    .filter(([name]) => !CONNECTION_HEADERS.has(name.toLowerCase()) && !without.includes(name.toLowerCase()))
    .flat();
}
