/** Waiting for an object to reach a state, by watching it. */
import type { KubeClient } from './client.ts';
import {
  type KubeObject,
  type ObjectRef,
  objectKey,
  resourceName,
  type ResourceType,
  type Stored,
} from './resource-type.ts';
import { Reflector } from './reflector.ts';

export interface AwaitOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** What is waited for, for the message of a time-out: `to be Ready`. */
  readonly until: string;
}

/** The object as soon as it satisfies the predicate. */
export function awaitObject<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  ref: ObjectRef,
  satisfied: (object: Stored<T>) => boolean,
  options: AwaitOptions,
): Promise<Stored<T>> {
  return observe(client, type, ref, options, (object) =>
    object !== undefined && satisfied(object) ? { value: object } : undefined,
  );
}

export function awaitDeletion(
  client: KubeClient,
  type: ResourceType,
  ref: ObjectRef,
  options: Omit<AwaitOptions, 'until'>,
): Promise<void> {
  return observe(client, type, ref, { ...options, until: 'to be gone' }, (object) =>
    object === undefined ? { value: undefined } : undefined,
  );
}

async function observe<T extends KubeObject, Result>(
  client: KubeClient,
  type: ResourceType<T>,
  ref: ObjectRef,
  options: AwaitOptions,
  judge: (object: Stored<T> | undefined) => { value: Result } | undefined,
): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const look = (object: Stored<T> | undefined): void => {
    const verdict = judge(object);
    if (verdict) resolve(verdict.value);
  };
  let lastError: unknown;
  const reflector = new Reflector({
    client,
    type,
    ...(ref.namespace !== undefined && { namespace: ref.namespace }),
    fieldSelector: `metadata.name=${ref.name}`,
    onChange: (change) => look(change.type === 'deleted' ? undefined : change.object),
    onError: (error) => (lastError = error),
  });
  const aborted = (): void => reject(options.signal?.reason as Error);
  const timer = setTimeout(() => {
    const what = `${resourceName(type)} "${objectKey(ref)}"`;
    reject(
      new Error(`gave up after ${options.timeoutMs / 1000} s waiting for ${what} ${options.until}`, {
        cause: lastError,
      }),
    );
  }, options.timeoutMs);
  options.signal?.addEventListener('abort', aborted, { once: true });
  try {
    reflector.start();
    // A list that does not have the object is no change, but may be the answer.
    reflector.synced.then(
      () => look(reflector.get(objectKey(ref))),
      () => {},
    );
    return await promise;
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', aborted);
    await reflector.stop();
  }
}
