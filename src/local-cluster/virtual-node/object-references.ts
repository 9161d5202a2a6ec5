/**
 * Objects that Pods refer to: read when a container starts, and followed while
 * a Pod waits for one or has one mounted. All followers of an object share one
 * watch, which ends with the last of them.
 */
import type { KubeClient } from '../../kube/client.ts';
import { NotFound } from '../../kube/errors.ts';
import { Reflector } from '../../kube/reflector.ts';
import {
  type KubeObject,
  objectKey,
  type ObjectRef,
  resourceName,
  type ResourceType,
  type Stored,
} from '../../kube/resource-type.ts';

/** Nothing can go on before this object exists or changes. */
export class AwaitsObject extends Error {
  readonly type: ResourceType;
  readonly ref: ObjectRef;

  constructor(message: string, type: ResourceType, ref: ObjectRef) {
    super(message);
    this.name = 'AwaitsObject';
    this.type = type;
    this.ref = ref;
  }
}

/** Told the version of the object, or undefined when it is gone. */
export type ReferenceListener = (resourceVersion: string | undefined) => void;

interface Followed {
  readonly reflector: Reflector<KubeObject>;
  readonly listeners: Set<ReferenceListener>;
}

export class ObjectReferences {
  readonly #client: KubeClient;
  readonly #onError: (error: unknown) => void;
  readonly #followed = new Map<string, Followed>();

  constructor(client: KubeClient, onError: (error: unknown) => void) {
    this.#client = client;
    this.#onError = onError;
  }

  async find<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    signal: AbortSignal,
  ): Promise<Stored<T> | undefined> {
    try {
      return await this.#client.get(type, ref, { signal });
    } catch (error) {
      if (error instanceof NotFound) return undefined;
      throw error;
    }
  }

  /** Calls back soon if the object exists, and on every change. Returns how to end it. */
  follow(type: ResourceType, ref: ObjectRef, listener: ReferenceListener): () => void {
    const key = referenceKey(type, ref);
    const followed = this.#followed.get(key) ?? this.#open(key, type, ref);
    followed.listeners.add(listener);
    // Who joins late has missed the event of what exists already.
    const existing = followed.reflector.get(objectKey(ref));
    if (existing) queueMicrotask(() => listener(existing.metadata.resourceVersion));
    return () => {
      followed.listeners.delete(listener);
      if (followed.listeners.size > 0 || this.#followed.get(key) !== followed) return;
      this.#followed.delete(key);
      void followed.reflector.stop();
    };
  }

  async stop(): Promise<void> {
    const all = [...this.#followed.values()];
    this.#followed.clear();
    await Promise.all(all.map(({ reflector }) => reflector.stop()));
  }

  #open(key: string, type: ResourceType, { name, namespace }: ObjectRef): Followed {
    const listeners = new Set<ReferenceListener>();
    const reflector = new Reflector<KubeObject>({
      client: this.#client,
      type,
      ...(namespace !== undefined && { namespace }),
      fieldSelector: `metadata.name=${name}`,
      onChange: ({ type: change, object }) => {
        for (const listener of listeners)
          listener(change === 'deleted' ? undefined : object.metadata.resourceVersion);
      },
      onError: this.#onError,
    });
    const followed = { reflector: reflector.start(), listeners };
    this.#followed.set(key, followed);
    return followed;
  }
}

export function referenceKey(type: ResourceType, ref: ObjectRef): string {
  return `${resourceName(type)} ${objectKey(ref)}`;
}
