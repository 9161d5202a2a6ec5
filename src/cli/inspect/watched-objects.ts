/** Objects of some kinds as they change, from one watch per kind. */
import type { Change } from '../../kube/change.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Reflector } from '../../kube/reflector.ts';
import type { ResourceType } from '../../kube/resource-type.ts';
import { byName, type EngineObject } from './engine-object.ts';

export interface Selection {
  readonly types: readonly ResourceType<EngineObject>[];
  readonly namespace?: string | undefined;
  /** One object of the one kind. */
  readonly name?: string;
}

export interface WatchListener {
  readonly changed: (change: Change<EngineObject>) => void;
  /** The watch goes on by itself. */
  readonly troubled: (error: unknown) => void;
}

export class WatchedObjects implements AsyncDisposable {
  readonly #client: KubeClient;
  readonly #selection: Selection;
  #reflectors: readonly Reflector<EngineObject>[] = [];

  constructor(client: KubeClient, selection: Selection) {
    this.#client = client;
    this.#selection = selection;
  }

  start(listener: WatchListener): void {
    this.#reflectors = this.#selection.types.map((type) => this.#reflector(type, listener).start());
  }

  sorted(): EngineObject[] {
    return this.#reflectors.flatMap((reflector) => [...reflector.values()]).toSorted(byName);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.stop()));
  }

  #reflector(
    type: ResourceType<EngineObject>,
    { changed, troubled }: WatchListener,
  ): Reflector<EngineObject> {
    const { namespace, name } = this.#selection;
    return new Reflector({
      client: this.#client,
      type,
      ...(type.namespaced && namespace !== undefined && { namespace }),
      ...(name !== undefined && { fieldSelector: `metadata.name=${name}` }),
      onChange: changed,
      onError: troubled,
    });
  }
}
