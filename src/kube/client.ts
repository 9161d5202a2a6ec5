/**
 * The API verbs over raw JSON. Every call takes an AbortSignal and has a
 * deadline; answers that are not success become the classes of errors.ts.
 */
import type { Connection } from './connection.ts';
import { type ApiResource, discover, Discovery } from './discovery.ts';
import { type ApiStatus, type Attempt, ConnectionError, RequestAborted } from './errors.ts';
import { lines } from './json-lines.ts';
import { ListSplitter } from './list-splitter.ts';
import { Pace } from './pace.ts';
import { pagesOf } from './pages.ts';
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
import { deleteRepeatable, patchRepeatable, updateRepeatable } from './retry.ts';
import { type Impersonation, type RawRequest, Transport, type TransportOptions } from './transport.ts';

export type { ClientObserver, RequestSample } from './transport.ts';
export type KubeClientOptions = TransportOptions;

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** For all tries together; default 30 s. */
  readonly timeoutMs?: number;
  /** False: one try. Which calls are tried again otherwise is in retry.ts. */
  readonly retry?: boolean;
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
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan' | undefined;
}

export interface WatchOptions extends ListOptions {
  readonly timeoutSeconds?: number;
  /** The current content first, as ADDED events up to a bookmark; see isInitialEventsEnd. */
  readonly sendInitialEvents?: boolean;
}

export interface DeleteOptions extends CallOptions {
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan';
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly dryRun?: boolean;
}

export interface ListMeta {
  readonly resourceVersion: string;
  /** Where the next page begins; empty or absent after the last one. */
  readonly continue?: string;
}

export interface ObjectList<T extends KubeObject> {
  readonly metadata: ListMeta;
  readonly items: readonly Stored<T>[];
}

export type WatchEvent<T extends KubeObject> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Stored<T> }
  | {
      readonly type: 'BOOKMARK';
      readonly object: {
        readonly metadata: {
          readonly resourceVersion: string;
          readonly annotations?: Readonly<Record<string, string>>;
        };
      };
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

export class KubeClient {
  readonly #connection: Connection;
  readonly #options: KubeClientOptions;
  readonly #transport: Transport;
  readonly #discovery = new Discovery(this);

  constructor(connection: Connection, options: KubeClientOptions = {}) {
    this.#connection = connection;
    this.#options = options;
    this.#transport = new Transport(connection, options);
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
      repeatable: 'always',
      attempt: attemptAt('get', type, ref),
    });
  }

  /** One page; follow `metadata.continue` for the rest. */
  async list<T extends KubeObject>(type: ResourceType<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    const list = await this.#json<ObjectList<T>>(listRequest(type, options));
    for (const object of list.items) nameKind(type, object);
    return list;
  }

  /**
   * One page whose objects are given one by one while it arrives, so that even
   * a large one does not hold the event loop. Tried once.
   */
  async listEach<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions,
    onObject: (object: Stored<T>) => void,
  ): Promise<{ readonly metadata: ListMeta }> {
    const splitter = new ListSplitter();
    const pace = new Pace();
    await this.#transport.stream(listRequest(type, options), async (body) => {
      for await (const chunk of body) {
        for (const item of splitter.push(chunk))
          onObject(nameKind(type, JSON.parse(item.toString('utf8')) as Stored<T>));
        await pace.breathe();
      }
    });
    return JSON.parse(splitter.end()) as { metadata: ListMeta };
  }

  /**
   * Every object once, fetched page by page. A list that takes so long that the
   * server forgets where it was begins anew; what was given before is not given
   * again, so the result is no snapshot then.
   */
  async *listAll<T extends KubeObject>(
    type: ResourceType<T>,
    options: Omit<ListOptions, 'continue'> = {},
  ): AsyncGenerator<Stored<T>> {
    const given = new Set<string>();
    for await (const { items } of pagesOf(options, (page) => this.list(type, page)))
      for (const object of items) {
        if (given.has(object.metadata.uid)) continue;
        given.add(object.metadata.uid);
        yield object;
      }
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
      // Without `ref` it is the object itself that is made.
      repeatable: options.ref ? 'when-unconnected' : 'when-refused',
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
      repeatable: updateRepeatable(object),
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
      repeatable: patchRepeatable(patch),
      attempt: attemptAt('patch', type, ref, options.subresource),
    });
  }

  /** Server-side apply of a whole object under one field manager. `force` (default) takes fields from others. */
  apply<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    { force = true, ...options }: WriteOptions & { readonly fieldManager: string; readonly force?: boolean },
  ): Promise<Stored<T>> {
    const body = { apiVersion: apiVersionOf(type), kind: type.kind, ...object };
    return this.patch(type, refOf(object), { kind: 'apply', body, force }, options);
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
        dryRun: options.dryRun ? ['All'] : undefined,
      },
      repeatable: deleteRepeatable(options.preconditions),
      attempt: attemptAt('delete', type, ref),
    });
  }

  /** Any other path, e.g. `/readyz`; the answer as text. Tried once, since the first answer is what a probe wants. */
  async text(path: string, options: CallOptions = {}): Promise<string> {
    const attempt = { verb: 'get', resource: path };
    return (await this.#transport.call({ ...options, method: 'GET', path, attempt, repeatable: 'never' }))
      .text;
  }

  /** GET of any other path; the answer as JSON, in the first form of `accept` that the server has. */
  json<Result>(path: string, options: CallOptions & { readonly accept?: string } = {}): Promise<Result> {
    const attempt = { verb: 'get', resource: path };
    return this.#json<Result>({ ...options, method: 'GET', path, attempt, repeatable: 'always' });
  }

  /** What the server offers now: all groups with their preferred and other versions. */
  discover(options: CallOptions = {}): Promise<ApiResource[]> {
    return discover(this, options);
  }

  /** How objects of this kind are addressed; asks the server once per kind. */
  resourceFor<T extends KubeObject>(
    apiVersion: string,
    kind: string,
    options: CallOptions = {},
  ): Promise<ResourceType<T>> {
    return this.#discovery.resourceFor<T>(apiVersion, kind, options);
  }

  /** The same connection in the name of somebody else; needs the right to `impersonate`. */
  impersonate(who: Impersonation): KubeClient {
    return new KubeClient(this.#connection, { ...this.#options, impersonate: who });
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
    const response = await this.#transport.open({
      signal: options.signal,
      method: 'GET',
      path: resourcePath(type, options),
      query: {
        ...selectors(options),
        watch: true,
        allowWatchBookmarks: true,
        resourceVersion: options.resourceVersion,
        resourceVersionMatch: options.resourceVersionMatch,
        sendInitialEvents: options.sendInitialEvents,
        timeoutSeconds: options.timeoutSeconds,
      },
      repeatable: 'never',
      attempt,
    });
    options.onActivity?.();
    try {
      for await (const line of lines(response.body, options.onActivity))
        yield JSON.parse(line) as WatchEvent<T>;
    } catch (error) {
      throw options.signal?.aborted
        ? new RequestAborted(attempt, options.signal.reason)
        : new ConnectionError(attempt, error);
    }
  }

  async #json<Result>(request: RawRequest): Promise<Result> {
    const { text } = await this.#transport.call(request);
    return JSON.parse(text) as Result;
  }
}

/** The bookmark that ends the first part of a watch with `sendInitialEvents`. */
export function isInitialEventsEnd(event: WatchEvent<KubeObject>): boolean {
  return (
    event.type === 'BOOKMARK' && event.object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true'
  );
}

function listRequest(type: ResourceType, options: ListOptions): RawRequest {
  return {
    ...options,
    method: 'GET',
    path: resourcePath(type, options),
    query: {
      ...selectors(options),
      limit: options.limit,
      continue: options.continue,
      resourceVersion: options.resourceVersion,
      resourceVersionMatch: options.resourceVersionMatch,
    },
    repeatable: 'always',
    attempt: attemptAt('list', type, options),
  };
}

/** In lists the server leaves out what it says for all; an object must not depend on the way it came. */
function nameKind<T extends KubeObject>(type: ResourceType<T>, object: Stored<T>): Stored<T> {
  object.apiVersion ??= apiVersionOf(type);
  object.kind ??= type.kind;
  return object;
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
