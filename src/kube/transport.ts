/**
 * HTTP under the verbs of client.ts: deadline, credentials, tries, and the
 * reading of answers. Watches are opened here as well, but tried only once;
 * their loop is the reflector's.
 */
import type { Dispatcher } from 'undici';
import { version } from '../version.ts';
import { type Clock, systemClock } from './clock.ts';
import type { Connection } from './connection.ts';
import type { Identity } from './credentials.ts';
import { Deadline } from './deadline.ts';
import {
  ApiError,
  apiErrorFrom,
  type ApiStatus,
  type Attempt,
  ConnectionError,
  DeadlineExceeded,
  RequestAborted,
  Unauthorized,
} from './errors.ts';
import { DEFAULT_RETRY, type Repeatable, retryDelay, type RetryPolicy } from './retry.ts';

/** One HTTP exchange, for metrics. */
export interface RequestSample {
  readonly method: string;
  readonly host: string;
  /** HTTP status, or undefined if there was no answer. */
  readonly code: number | undefined;
  /** To the end of the answer; of a watch, to its headers. */
  readonly ms: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** How many tries of the same call went before this one. */
  readonly retries: number;
}

/** Hears of everything that metrics are made of. */
export interface ClientObserver {
  request?(sample: RequestSample): void;
}

export interface Impersonation {
  readonly user: string;
  readonly groups?: readonly string[];
  readonly uid?: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface TransportOptions {
  readonly clock?: Clock;
  /** 0 to 1; for the jitter of retries. */
  readonly random?: () => number;
  readonly observer?: ClientObserver;
  readonly retry?: Partial<RetryPolicy>;
  /** Default 30 s. */
  readonly timeoutMs?: number;
  readonly userAgent?: string;
  readonly impersonate?: Impersonation;
  /** Called right before every request that changes something; throws where it must not be sent any more. */
  readonly beforeWrite?: () => void;
}

export interface RawRequest {
  readonly method: Dispatcher.HttpMethod;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly attempt: Attempt;
  readonly repeatable: Repeatable;
  readonly signal?: AbortSignal | undefined;
  /** For all tries together; 0 means none. */
  readonly timeoutMs?: number | undefined;
  /** False: tried once, whatever `repeatable` says. */
  readonly retry?: boolean | undefined;
}

export interface Answer {
  readonly text: string;
  readonly contentType: string;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_STREAM_TIMEOUT_MS = 120_000;

interface Try {
  readonly attempt: Attempt;
  readonly startedAt: number;
  readonly requestBytes: number;
}

export class Transport {
  readonly #connection: Connection;
  readonly #options: TransportOptions;
  readonly #clock: Clock;
  readonly #retry: RetryPolicy;
  readonly #headers: Readonly<Record<string, string | string[]>>;
  readonly #host: string;

  constructor(connection: Connection, options: TransportOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#retry = { ...DEFAULT_RETRY, ...options.retry };
    this.#host = new URL(connection.server).host;
    this.#headers = {
      'user-agent': options.userAgent ?? `taskflow-operator/${version}`,
      ...impersonationHeaders(options.impersonate),
    };
  }

  /** The whole answer of a call. */
  async call(request: RawRequest): Promise<Answer> {
    const timeoutMs = request.timeoutMs ?? this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    using deadline = new Deadline(this.#clock, timeoutMs, request.signal);
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    for (let tries = 1; ; tries++) {
      const attempt = tries === 1 ? request.attempt : { ...request.attempt, retries: tries - 1 };
      try {
        return await this.#authenticated(attempt, deadline.signal, (identity) =>
          this.#exchange(request, body, attempt, identity, deadline),
        );
      } catch (thrown) {
        const error = deadline.signal.aborted ? endOf(deadline, attempt, timeoutMs, thrown) : thrown;
        await this.#pause(request, error, tries, deadline);
      }
    }
  }

  /** A call whose answer is read as it comes. Tried once. */
  async stream(request: RawRequest, read: (body: AsyncIterable<Buffer>) => Promise<void>): Promise<void> {
    const timeoutMs = request.timeoutMs ?? this.#options.timeoutMs ?? DEFAULT_STREAM_TIMEOUT_MS;
    using deadline = new Deadline(this.#clock, timeoutMs, request.signal);
    const { attempt } = request;
    try {
      await this.#authenticated(attempt, deadline.signal, async (identity) => {
        const { calls } = this.#connection.agents(identity);
        const started = this.#begin(attempt, undefined);
        const response = await this.#send(calls, request, undefined, identity, deadline.signal, started);
        if (response.statusCode >= 300) throw await this.#refusal(request, response, started);
        await read(response.body);
        this.#observe(request, started, response.statusCode);
      });
    } catch (error) {
      if (deadline.signal.aborted) throw endOf(deadline, attempt, timeoutMs, error);
      throw error instanceof ApiError || error instanceof ConnectionError
        ? error
        : new ConnectionError(attempt, error);
    }
  }

  /** An answer whose body is still to come: a watch. The signal ends it, no deadline does. */
  async open(request: RawRequest): Promise<Dispatcher.ResponseData> {
    return this.#authenticated(request.attempt, request.signal, async (identity) => {
      const { watches } = this.#connection.agents(identity);
      const started = this.#begin(request.attempt, undefined);
      const response = await this.#send(watches, request, undefined, identity, request.signal, started);
      if (response.statusCode < 300) {
        this.#observe(request, started, response.statusCode);
        return response;
      }
      throw await this.#refusal(request, response, started);
    });
  }

  /** Returns when the next try may begin; throws the error if there is to be none. */
  async #pause(request: RawRequest, error: unknown, tries: number, deadline: Deadline): Promise<void> {
    if (request.retry === false) throw error;
    const random = this.#options.random ?? Math.random;
    const delayMs = retryDelay(error, request.repeatable, tries, this.#retry, random);
    if (delayMs === undefined || delayMs >= deadline.remainingMs) throw error;
    await this.#clock.sleep(delayMs, deadline.signal);
    if (deadline.signal.aborted) throw error;
  }

  /** With the credentials we have, and if the server refuses them once more with fresh ones. */
  async #authenticated<T>(
    attempt: Attempt,
    signal: AbortSignal | undefined,
    send: (identity: Identity) => Promise<T>,
  ): Promise<T> {
    const identity = await this.#identity(attempt, signal);
    try {
      return await send(identity);
    } catch (error) {
      if (!(error instanceof Unauthorized)) throw error;
      if (!(await within(signal, this.#connection.renew(identity)))) throw error;
    }
    return send(await this.#identity(attempt, signal));
  }

  async #identity(attempt: Attempt, signal: AbortSignal | undefined): Promise<Identity> {
    try {
      const known = this.#connection.identity();
      return known instanceof Promise ? await within(signal, known) : known;
    } catch (error) {
      throw new ConnectionError(attempt, error);
    }
  }

  async #exchange(
    request: RawRequest,
    body: string | undefined,
    attempt: Attempt,
    identity: Identity,
    deadline: Deadline,
  ): Promise<Answer> {
    const { calls } = this.#connection.agents(identity);
    if (request.method !== 'GET') this.#options.beforeWrite?.();
    const started = this.#begin(attempt, body);
    const response = await this.#send(calls, request, body, identity, deadline.signal, started);
    if (response.statusCode >= 300) throw await this.#refusal(request, response, started);
    const text = await this.#read(request, response, started);
    this.#observe(request, started, response.statusCode, text);
    return { text, contentType: String(response.headers['content-type'] ?? '') };
  }

  async #send(
    agent: Dispatcher,
    request: RawRequest,
    body: string | undefined,
    identity: Identity,
    signal: AbortSignal | undefined,
    started: Try,
  ): Promise<Dispatcher.ResponseData> {
    try {
      const response = agent.request({
        origin: this.#connection.origin,
        path: this.#connection.basePath + request.path + queryString(request.query),
        method: request.method,
        headers: {
          accept: request.accept ?? 'application/json',
          ...this.#headers,
          ...identity.headers,
          ...(body !== undefined && { 'content-type': request.contentType ?? 'application/json' }),
        },
        ...(signal && { signal }),
        ...(body !== undefined && { body }),
      });
      return await within(signal, response);
    } catch (error) {
      this.#observe(request, started, undefined);
      throw signal?.aborted
        ? new RequestAborted(started.attempt, signal.reason)
        : new ConnectionError(started.attempt, error);
    }
  }

  async #read(request: RawRequest, response: Dispatcher.ResponseData, started: Try): Promise<string> {
    try {
      return await response.body.text();
    } catch (error) {
      this.#observe(request, started, undefined);
      throw new ConnectionError(started.attempt, error);
    }
  }

  async #refusal(request: RawRequest, response: Dispatcher.ResponseData, started: Try): Promise<ApiError> {
    const text = await this.#read(request, response, started);
    this.#observe(request, started, response.statusCode, text);
    return apiErrorFrom(
      started.attempt,
      response.statusCode,
      parseStatus(text),
      retryAfter(response, this.#clock),
    );
  }

  #begin(attempt: Attempt, body: string | undefined): Try {
    const requestBytes = this.#options.observer && body !== undefined ? Buffer.byteLength(body) : 0;
    return { attempt, startedAt: this.#clock.monotonic(), requestBytes };
  }

  #observe(request: RawRequest, started: Try, code: number | undefined, text = ''): void {
    this.#options.observer?.request?.({
      method: request.method,
      host: this.#host,
      code,
      ms: this.#clock.monotonic() - started.startedAt,
      requestBytes: started.requestBytes,
      responseBytes: Buffer.byteLength(text),
      retries: started.attempt.retries ?? 0,
    });
  }
}

function endOf(deadline: Deadline, attempt: Attempt, timeoutMs: number, thrown: unknown): unknown {
  if (thrown instanceof ApiError) return thrown;
  if (deadline.expired) return new DeadlineExceeded(attempt, timeoutMs);
  return new RequestAborted(attempt, deadline.signal.reason);
}

/**
 * Ends with the signal even if the work does not: plugins hang, and undici
 * holds back the abort of a request that still waits for its connection.
 */
function within<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return work;
  return new Promise<T>((resolve, reject) => {
    const aborted = (): void => reject(signal.reason as Error);
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted, { once: true });
    const settle = (): void => signal.removeEventListener('abort', aborted);
    work.then(
      (result) => {
        settle();
        resolve(result);
      },
      (error: Error) => {
        settle();
        reject(error);
      },
    );
  });
}

function queryString(query: RawRequest['query']): string {
  if (!query) return '';
  let text = '';
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) text += `${text === '' ? '?' : '&'}${name}=${encodeURIComponent(String(value))}`;
  return text;
}

function impersonationHeaders(who: Impersonation | undefined): Record<string, string | string[]> {
  if (!who) return {};
  return {
    'Impersonate-User': who.user,
    ...(who.groups?.length && { 'Impersonate-Group': [...who.groups] }),
    ...(who.uid !== undefined && { 'Impersonate-Uid': who.uid }),
    ...Object.fromEntries(
      Object.entries(who.extra ?? {}).map(([key, values]) => [
        `Impersonate-Extra-${encodeURIComponent(key)}`,
        [...values],
      ]),
    ),
  };
}

/** Proxies and early start-up answer with plain text. */
function parseStatus(text: string): ApiStatus {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) return parsed;
  } catch {
    // Not JSON: the text itself is the message.
  }
  return { message: text.trim() };
}

/** Seconds, or a date as proxies write it. */
function retryAfter(response: Dispatcher.ResponseData, clock: Clock): number | undefined {
  const header = response.headers['retry-after'];
  if (typeof header !== 'string') return undefined;
  const seconds = Number(header);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - clock.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
