/** The caches of the process: one informer per kind, shared by whoever asks for it. */
import type { KubeClient } from '../kube/client.ts';
import { Informer, type InformerOptions } from '../kube/informer.ts';
import { type KubeObject, resourceName, type ResourceType } from '../kube/resource-type.ts';
import type { Logger } from './logging.ts';
import type { Metrics } from './metrics.ts';
import type { Component } from './operator.ts';

export interface InformersOptions {
  readonly client: KubeClient;
  /** Only these; all where empty. */
  readonly namespaces: readonly string[];
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly syncTimeoutMs: number;
}

export class Informers implements Component {
  readonly name = 'caches';
  readonly phase = 'caches';
  readonly #options: InformersOptions;
  readonly #informers = new Map<string, Informer<KubeObject>>();
  #started = false;

  constructor(options: InformersOptions) {
    this.#options = options;
  }

  /** The informer of a kind; indexers count only for who asks first, so a kind's own controller asks first. */
  of<T extends KubeObject>(
    type: ResourceType<T>,
    options: Pick<InformerOptions<T>, 'indexers' | 'labelSelector'> = {},
  ): Informer<T> {
    const key = `${resourceName(type)}?${options.labelSelector ?? ''}`;
    const known = this.#informers.get(key);
    if (known) return known as unknown as Informer<T>;
    const { client, namespaces, log, metrics } = this.#options;
    const informer: Informer<T> = new Informer<T>({
      ...options,
      client,
      type,
      ...(type.namespaced && namespaces.length > 0 && { namespaces }),
      observer: metrics.forInformer(resourceName(type), () => informer.health),
      onError: (error) => log.warn('cache has trouble', { resource: resourceName(type), error }),
    });
    this.#informers.set(key, informer as unknown as Informer<KubeObject>);
    if (this.#started) informer.start();
    return informer;
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#started = true;
    const timeout = AbortSignal.timeout(this.#options.syncTimeoutMs);
    const over = AbortSignal.any([signal, timeout]);
    const { promise: gaveUp, reject } = Promise.withResolvers<never>();
    const giveUp = (): void => reject(new Error(`caches did not fill: ${this.fault() ?? 'stopped'}`));
    over.addEventListener('abort', giveUp, { once: true });
    try {
      const all = [...this.#informers.values()].map((informer) => informer.start().synced);
      await Promise.race([Promise.all(all), gaveUp]);
    } finally {
      over.removeEventListener('abort', giveUp);
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.stop()));
  }

  /** What is wrong with the caches, if anything. */
  fault(): string | undefined {
    const faults = [...this.#informers.values()].flatMap(({ type, health }) => {
      if (health.synced && !health.stale) return [];
      const why = health.lastError instanceof Error ? ` (${health.lastError.message})` : '';
      return [`${resourceName(type)} ${health.synced ? 'is stale' : 'is not synced'}${why}`];
    });
    return faults.length === 0 ? undefined : faults.join(', ');
  }
}
