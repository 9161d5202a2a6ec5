/**
 * The API verbs over raw JSON. Every call takes an AbortSignal and has a
 * deadline; answers that are not success become the classes of errors.ts.
 */
import type { Dispatcher } from 'undici';
import type { Connection } from './connection.ts';
import { apiErrorFrom, type ApiStatus, type Attempt, ConnectionError } from './errors.ts';
import {
  apiVersionOf,
  type KubeObject,
  objectKey,
  type ObjectMeta,
  type ObjectRef,
  type PathParts,
  resourceName,
  resourcePath,
  type ResourceType,
  type Stored,
} from './resource-type.ts';

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export interface WriteOptions extends CallOptions {
  readonly subresource?: string;
  readonly fieldManager?: string;
  readonly dryRun?: boolean;
}

export interface ListOptions extends CallOptions {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly limit?: number;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface WatchOptions extends ListOptions {
  readonly timeoutSeconds?: number;
}

export interface DeleteOptions extends CallOptions {
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan';
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

export interface ObjectList<T extends KubeObject> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly Stored<T>[];
}

export type WatchEvent<T extends KubeObject> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Stored<T> }
  | {
      readonly type: 'BOOKMARK';
      readonly object: { readonly metadata: { readonly resourceVersion: string } };
    }
  | { readonly type: 'ERROR'; readonly object: ApiStatus };

export type Patch =
  | { readonly kind: 'merge'; readonly body: object }
  | { readonly kind: 'json'; readonly body: readonly object[] }
  | { readonly kind: 'strategic'; readonly body: object }
  | { readonly kind: 'apply'; readonly body: object; readonly force?: boolean };

const PATCH_CONTENT_TYPE = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

const DEFAULT_TIMEOUT_MS = 30_000;

interface RawRequest extends CallOptions {
  readonly method: Dispatcher.HttpMethod;
  readonly path: string;
  readonly query?: Record<string, string | number | boolean | undefined>;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly attempt: Attempt;
}

export class KubeClient {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get server(): string {
    return this.#connection.server;
  }

  get<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    options: CallOptions = {},
  ): Promise<Stored<T>> {
    return this.#json<Stored<T>>({
      ...options,
      method: 'GET',
      path: resourcePath(type, ref),
      attempt: attemptAt('get', type, ref),
    });
  }

  /** One page; follow `metadata.continue` for the rest. */
  list<T extends KubeObject>(type: ResourceType<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    return this.#json<ObjectList<T>>({
      ...options,
      method: 'GET',
      path: resourcePath(type, options),
      query: {
        ...selectors(options),
        limit: options.limit,
        continue: options.continue,
        resourceVersion: options.resourceVersion,
      },
      attempt: attemptAt('list', type, options),
    });
  }

  create<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<Stored<T>> {
    return this.createSub<T, Stored<T>>(type, object, options);
  }

  /** POST to a subresource such as `binding` or `token`, whose answer is of another kind. */
  createSub<T extends KubeObject, Answer>(
    type: ResourceType<T>,
    object: KubeObject,
    options: WriteOptions & { readonly ref?: ObjectRef } = {},
  ): Promise<Answer> {
    const ref = options.ref ?? refOf(object);
    return this.#json<Answer>({
      ...options,
      method: 'POST',
      path: resourcePath(type, {
        namespace: ref.namespace,
        ...(options.ref && { name: options.ref.name }),
        subresource: options.subresource,
      }),
      query: writeQuery(options),
      body: options.ref ? object : { apiVersion: apiVersionOf(type), kind: type.kind, ...object },
      attempt: attemptAt('create', type, ref, options.subresource),
    });
  }

  update<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<Stored<T>> {
    const ref = refOf(object);
    return this.#json<Stored<T>>({
      ...options,
      method: 'PUT',
      path: resourcePath(type, { ...ref, subresource: options.subresource }),
      query: writeQuery(options),
      body: { apiVersion: apiVersionOf(type), kind: type.kind, ...object },
      attempt: attemptAt('update', type, ref, options.subresource),
    });
  }

  patch<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    patch: Patch,
    options: WriteOptions = {},
  ): Promise<Stored<T>> {
    return this.#json<Stored<T>>({
      ...options,
      method: 'PATCH',
      path: resourcePath(type, { ...ref, subresource: options.subresource }),
      query: { ...writeQuery(options), force: patch.kind === 'apply' ? patch.force : undefined },
      body: patch.body,
      contentType: PATCH_CONTENT_TYPE[patch.kind],
      attempt: attemptAt('patch', type, ref, options.subresource),
    });
  }

  /** Server-side apply of a whole object under one field manager. */
  apply<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    options: WriteOptions & { readonly fieldManager: string },
  ): Promise<Stored<T>> {
    const body = { apiVersion: apiVersionOf(type), kind: type.kind, ...object };
    return this.patch(type, refOf(object), { kind: 'apply', body, force: true }, options);
  }

  async delete(type: ResourceType, ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    await this.#json<unknown>({
      ...options,
      method: 'DELETE',
      path: resourcePath(type, ref),
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: options.propagationPolicy,
        gracePeriodSeconds: options.gracePeriodSeconds,
        preconditions: options.preconditions,
      },
      attempt: attemptAt('delete', type, ref),
    });
  }

  /** Any other path, e.g. `/readyz`; the answer as text. */
  async text(path: string, options: CallOptions = {}): Promise<string> {
    const attempt = { verb: 'get', resource: path };
    const response = await this.#send(this.#connection.calls, { ...options, method: 'GET', path, attempt });
    return readText(response, attempt);
  }

  /**
   * Events of one watch connection, ending when the server ends it. `onActivity`
   * hears of every byte, so that the caller can tell a quiet watch from a dead one.
   */
  async *watch<T extends KubeObject>(
    type: ResourceType<T>,
    options: WatchOptions & { readonly onActivity?: () => void } = {},
  ): AsyncGenerator<WatchEvent<T>> {
    const attempt = attemptAt('watch', type, options);
    const response = await this.#send(this.#connection.watches, {
      ...options,
      timeoutMs: 0,
      method: 'GET',
      path: resourcePath(type, options),
      query: {
        ...selectors(options),
        watch: true,
        allowWatchBookmarks: true,
        resourceVersion: options.resourceVersion,
        timeoutSeconds: options.timeoutSeconds,
      },
      attempt,
    });
    options.onActivity?.();
    try {
      for await (const line of lines(response.body, options.onActivity))
        yield JSON.parse(line) as WatchEvent<T>;
    } catch (error) {
      throw new ConnectionError(attempt, error);
    }
  }

  async #json<Answer>(request: RawRequest): Promise<Answer> {
    const response = await this.#send(this.#connection.calls, request);
    return JSON.parse(await readText(response, request.attempt)) as Answer;
  }

  async #send(agent: Dispatcher, request: RawRequest): Promise<Dispatcher.ResponseData> {
    const timeoutMs = request.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    let response: Dispatcher.ResponseData;
    try {
      response = await agent.request({
        origin: this.#connection.server,
        path: request.path,
        method: request.method,
        query: definedOnly(request.query ?? {}),
        headers: {
          ...this.#connection.headers(),
          accept: 'application/json',
          ...(request.body !== undefined && { 'content-type': request.contentType ?? 'application/json' }),
        },
        signal: deadline(request.signal, timeoutMs),
        ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
      });
    } catch (error) {
      throw new ConnectionError(request.attempt, error);
    }
    if (response.statusCode < 300) return response;
    throw apiErrorFrom(
      request.attempt,
      response.statusCode,
      parseStatus(await readText(response, request.attempt)),
      retryAfter(response),
    );
  }
}

function attemptAt(verb: string, type: ResourceType, at: PathParts, subresource?: string): Attempt {
  const resource = subresource === undefined ? resourceName(type) : `${resourceName(type)}/${subresource}`;
  const object = at.name === undefined ? at.namespace : objectKey({ name: at.name, namespace: at.namespace });
  return { verb, resource, object };
}

function refOf(object: KubeObject): ObjectRef {
  const metadata: ObjectMeta = object.metadata ?? {};
  return { name: metadata.name ?? metadata.generateName ?? '', namespace: metadata.namespace };
}

function selectors(options: ListOptions): Record<string, string | undefined> {
  return { labelSelector: options.labelSelector, fieldSelector: options.fieldSelector };
}

function writeQuery(options: WriteOptions): Record<string, string | undefined> {
  return { fieldManager: options.fieldManager, dryRun: options.dryRun ? 'All' : undefined };
}

function definedOnly<V>(record: Record<string, V | undefined>): Record<string, V> {
  return Object.fromEntries(
    Object.entries(record).filter((entry): entry is [string, V] => entry[1] !== undefined),
  );
}

/** `timeoutMs` 0 means none: a watch is bounded by its own inactivity timer. */
function deadline(signal: AbortSignal | undefined, timeoutMs: number): AbortSignal | null {
  const signals = [...(signal ? [signal] : []), ...(timeoutMs > 0 ? [AbortSignal.timeout(timeoutMs)] : [])];
  return signals.length === 0 ? null : AbortSignal.any(signals);
}

async function readText(response: Dispatcher.ResponseData, attempt: Attempt): Promise<string> {
  try {
    return await response.body.text();
  } catch (error) {
    throw new ConnectionError(attempt, error);
  }
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

function retryAfter(response: Dispatcher.ResponseData): number | undefined {
  const seconds = Number(response.headers['retry-after']);
  return Number.isFinite(seconds) ? seconds * 1000 : undefined;
}

async function* lines(body: AsyncIterable<Buffer>, onActivity?: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    onActivity?.();
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) if (part !== '') yield part;
  }
}
