/**
 * Keeps the API server's idea of the webhooks right: applied at the start,
 * after every change of the certificates, and whenever somebody else changed
 * or deleted it. It writes only what differs. If its writes do not last, as
 * when two versions of the operator disagree, it repairs ever less often
 * instead of fighting. One replica is enough to keep it; more do no harm.
 */
import type { ServingCertificates } from './certificates.ts';
import {
  type ConfigurationOptions,
  contains,
  mutatingConfigurations,
  validatingConfigurations,
  webhookConfigurations,
} from './configuration.ts';
import { FORGIVENESS_MS, isForGood } from './for-good.ts';
import { silentLog, type WebhookLog } from './log.ts';
import type { WebhookKind } from './rules.ts';
import { SteadyLoop, wakeWhenSynced } from './steady-loop.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Clock, systemClock } from '../kube/clock.ts';
import { NotFound } from '../kube/errors.ts';
import { Reflector } from '../kube/reflector.ts';
import type { KubeObject, ResourceType, Stored } from '../kube/resource-type.ts';

export interface ConfigurationKeeperOptions extends Omit<ConfigurationOptions, 'caBundle'> {
  readonly client: KubeClient;
  readonly kinds: readonly WebhookKind[];
  readonly certificates: Pick<ServingCertificates, 'caBundle' | 'onChange'>;
  readonly clock?: Clock;
  readonly log?: WebhookLog;
}

const FIELD_MANAGER = 'taskflow/webhooks';
/** A repair that is needed again so soon did not last. */
const LASTING_MS = 5 * 60_000;
const REPAIR = { firstMs: 1_000, maxMs: 60_000 };

export class ConfigurationKeeper {
  readonly #options: ConfigurationKeeperOptions;
  readonly #clock: Clock;
  readonly #log: WebhookLog;
  readonly #loop: SteadyLoop;
  readonly #reflectors: readonly Reflector<KubeObject>[];
  readonly #applied = Promise.withResolvers<void>();
  readonly #wanted: { text: string; writes: number; lastWrite: number } = {
    text: '',
    writes: 0,
    lastWrite: -Infinity,
  };
  #kinds: readonly WebhookKind[];
  #startedAt = 0;
  #forgetCertificates = (): void => {};

  constructor(options: ConfigurationKeeperOptions) {
    this.#options = options;
    this.#kinds = options.kinds;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLog;
    this.#applied.promise.catch(() => {});
    this.#loop = new SteadyLoop({
      work: (signal) => this.#keep(signal),
      clock: this.#clock,
      onError: (error) => this.#failed(error),
    });
    this.#reflectors = [mutatingConfigurations, validatingConfigurations].map(
      (type: ResourceType) =>
        new Reflector<KubeObject>({
          client: options.client,
          type,
          fieldSelector: `metadata.name=${options.name}`,
          onChange: () => this.#loop.wake(),
          onError: (error) => this.#log.warn('watch of the webhook configuration failed', { error }),
        }),
    );
  }

  /**
   * Resolves when both configurations are what they should be for the first
   * time; rejects if they cannot be, for want of rights or the like.
   */
  async start(): Promise<void> {
    this.#forgetCertificates = this.#options.certificates.onChange(() => this.#loop.wake());
    this.#startedAt = this.#clock.now();
    this.#loop.start();
    for (const reflector of this.#reflectors) wakeWhenSynced(reflector.start(), this.#loop);
    try {
      await this.#applied.promise;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  replaceKinds(kinds: readonly WebhookKind[]): void {
    this.#kinds = kinds;
    this.#loop.wake();
  }

  /** The configurations stay: another replica serves them. */
  async stop(): Promise<void> {
    this.#forgetCertificates();
    await Promise.all([this.#loop.stop(), ...this.#reflectors.map((reflector) => reflector.stop())]);
    this.#applied.reject(new Error('the webhook configuration was stopped before it was applied'));
  }

  #failed(error: unknown): void {
    this.#log.warn('webhook configuration could not be kept', { error });
    const late = this.#clock.now() - this.#startedAt >= FORGIVENESS_MS;
    if (late && isForGood(error)) this.#applied.reject(error);
  }

  async #keep(signal: AbortSignal): Promise<number | undefined> {
    const { mutating, validating } = webhookConfigurations(this.#kinds, {
      ...this.#options,
      caBundle: this.#options.certificates.caBundle,
    });
    const text = JSON.stringify([mutating, validating]);
    // What we want anew is no repair.
    if (text !== this.#wanted.text) Object.assign(this.#wanted, { text, writes: 0, lastWrite: -Infinity });
    const waits = [
      await this.#keepOne(mutatingConfigurations, mutating, signal),
      await this.#keepOne(validatingConfigurations, validating, signal),
    ];
    const wait = waits.find((ms) => ms !== undefined);
    if (wait === undefined) this.#applied.resolve();
    return wait;
  }

  /** Milliseconds to wait before the next repair, if it is too early for one. */
  async #keepOne<T extends KubeObject>(
    type: ResourceType<T>,
    wanted: T,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const found = await this.#read(type, signal);
    if (found && contains(found, wanted)) return undefined;
    const early = this.#earlyBy();
    if (early > 0) return early;
    await this.#options.client.apply(type, wanted, { fieldManager: FIELD_MANAGER, signal });
    this.#wanted.lastWrite = this.#clock.now();
    this.#wanted.writes++;
    this.#log.info('webhook configuration applied', {
      kind: type.kind,
      name: this.#options.name,
      found: found ? 'different' : 'none',
    });
    return undefined;
  }

  async #read<T extends KubeObject>(
    type: ResourceType<T>,
    signal: AbortSignal,
  ): Promise<Stored<T> | undefined> {
    try {
      return await this.#options.client.get(type, { name: this.#options.name }, { signal });
    } catch (error) {
      if (error instanceof NotFound) return undefined;
      throw error;
    }
  }

  /** The first application and the first repair of each object are free. */
  #earlyBy(): number {
    const { writes, lastWrite } = this.#wanted;
    const since = this.#clock.now() - lastWrite;
    if (since > LASTING_MS) this.#wanted.writes = 0;
    if (this.#wanted.writes < 4) return 0;
    return Math.min(REPAIR.maxMs, REPAIR.firstMs * 2 ** (writes - 4)) - since;
  }
}
