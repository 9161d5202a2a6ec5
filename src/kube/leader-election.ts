/**
 * One leader among replicas, by a Lease. Clocks of other machines are never
 * trusted: a lease is over when we have not seen it change for its duration
 * by our own clock. We ourselves stop leading earlier, when our last renewal
 * is older than the renew deadline; isLeader() computes that at the call, so
 * that a process that was frozen does not lead for the moment until its timers
 * have run. A lost lease is not taken again: the process is to end.
 *
 * Each term has an epoch, greater than all before, in an annotation of the
 * Lease. It is written in the same update that takes the lease, and goes into
 * what the leader writes, so that late writes of an old leader are known.
 */
import { randomUUID } from 'node:crypto';
import { type Lease, leases } from './builtin-resources.ts';
import type { KubeClient } from './client.ts';
import { type Clock, systemClock } from './clock.ts';
import { AlreadyExists, Conflict, NotFound } from './errors.ts';
import { Reflector } from './reflector.ts';
import type { ObjectRef, Stored } from './resource-type.ts';

export interface LeaderElectionTiming {
  /** How long a lease counts that nobody renews. */
  readonly leaseDurationMs: number;
  /** How long the leader goes on without a renewal. */
  readonly renewDeadlineMs: number;
  /** Between two tries; standbys wait up to 2.2 times as long, so that they do not come together. */
  readonly retryPeriodMs: number;
}

/** Hears of everything that metrics are made of. */
export interface LeaderElectionObserver {
  /** We lead now, or no longer do. */
  leading?(leads: boolean): void;
  /** A renewal found that somebody else had written the Lease. */
  slowPath?(): void;
}

export interface LeaderElectorOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /** Of this process and no other, ever; see electionIdentity. */
  readonly identity: string;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly timing?: Partial<LeaderElectionTiming>;
  readonly observer?: LeaderElectionObserver;
  readonly onError?: (error: unknown) => void;
}

export const EPOCH_ANNOTATION = 'taskflow.dev/epoch';

const TIMING: LeaderElectionTiming = {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
};
const STANDBY_JITTER = 1.2;

/** A name that is never used twice. */
export function electionIdentity(host: string): string {
  return `${host}_${randomUUID()}`;
}

/** A moment by both clocks: one stands still while a machine sleeps, the other can be set. */
interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

interface Observation {
  readonly lease: Stored<Lease>;
  /** Monotonic time at which we first saw the Lease in this version. */
  readonly at: number;
}

export class LeaderElector {
  readonly #options: LeaderElectorOptions;
  readonly #ref: ObjectRef;
  readonly #clock: Clock;
  readonly #timing: LeaderElectionTiming;
  readonly #stopping = new AbortController();
  readonly #leading = Promise.withResolvers<void>();
  readonly #lost = Promise.withResolvers<Error>();
  #loop: Promise<void> | undefined;
  #observed: Observation | undefined;
  /** When the last successful renewal was sent; set only while we hold the lease. */
  #renewedAt: Moment | undefined;
  #epoch = 0;
  /** The epoch of a try to take the lease whose answer we did not get. */
  #claimed = 0;

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.#ref = { namespace: options.namespace, name: options.name };
    this.#clock = options.clock ?? systemClock;
    this.#timing = { ...TIMING, ...options.timing };
    const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = this.#timing;
    if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs))
      throw new RangeError(
        `leader election needs lease duration > renew deadline > retry period, not ${leaseDurationMs}, ${renewDeadlineMs}, ${retryPeriodMs} ms`,
      );
  }

  /** Resolves when we lead; never if we are stopped before. */
  get leading(): Promise<void> {
    return this.#leading.promise;
  }

  /** Resolves when we led and no longer do, other than by stop(). */
  get lost(): Promise<Error> {
    return this.#lost.promise;
  }

  /** Of our term; 0 before it. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Who leads as far as we know; undefined if nobody does. */
  get holder(): string | undefined {
    return this.#observed?.lease.spec?.holderIdentity || undefined;
  }

  isLeader(): boolean {
    return this.#termLeft() > 0;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Ends our term at once; what is led must have ended before. Releases the lease, so that nobody waits. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    const held = this.isLeader();
    this.#renewedAt = undefined;
    if (!held) return;
    this.#options.observer?.leading?.(false);
    await this.#release().catch((error: unknown) => this.#options.onError?.(error));
  }

  async #run(): Promise<void> {
    if (!(await this.#acquire())) return;
    this.#leading.resolve();
    this.#options.observer?.leading?.(true);
    const error = await this.#keep();
    if (!error) return;
    this.#renewedAt = undefined;
    this.#options.observer?.leading?.(false);
    this.#lost.resolve(error);
  }

  /** True when the lease is ours, false when stopped. */
  async #acquire(): Promise<boolean> {
    const { signal } = this.#stopping;
    const wake = new WakeUp();
    // Tells of a released lease at once; without the right to watch it, polling remains.
    const reflector = new Reflector<Lease>({
      client: this.#options.client,
      type: leases,
      namespace: this.#options.namespace,
      fieldSelector: `metadata.name=${this.#options.name}`,
      clock: this.#clock,
      onChange: (change) => {
        if (change.type === 'deleted') this.#observed = undefined;
        else this.#observe(change.object);
        if (this.#mayTake()) wake.now();
      },
    }).start();
    try {
      while (!signal.aborted) {
        if (await this.#tryToLead()) return true;
        const random = this.#options.random ?? Math.random;
        const pause = this.#timing.retryPeriodMs * (1 + random() * STANDBY_JITTER);
        const expiry = this.#untilExpiry();
        await wake.orAfter(this.#clock, expiry > 0 ? Math.min(pause, expiry) : pause, signal);
      }
      return false;
    } finally {
      await reflector.stop();
    }
  }

  /** Renews until that fails for too long; undefined when stopped. */
  async #keep(): Promise<Error | undefined> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#clock.sleep(Math.min(this.#timing.retryPeriodMs, this.#termLeft()), signal);
      if (signal.aborted) return undefined;
      // Not even a renewal that would succeed now: others may have acted on our silence.
      if (!this.isLeader())
        return new Error(
          `lost the lease ${this.#name()}: not renewed within ${this.#timing.renewDeadlineMs / 1000} s`,
        );
      const outcome = await this.#renew();
      if (outcome === 'taken')
        return new Error(`lost the lease ${this.#name()}: "${this.holder ?? 'nobody'}" holds it now`);
    }
    return undefined;
  }

  async #tryToLead(): Promise<boolean> {
    try {
      if (!this.#mayTake()) this.#observe(await this.#get());
      return this.#mayTake() && (await this.#take());
    } catch (error) {
      if (error instanceof NotFound) return this.#takeNew();
      // Somebody else was faster: see who in the next round.
      if (error instanceof Conflict) this.#observed = undefined;
      else this.#report(error);
      return false;
    }
  }

  /** Whether the lease, as we know it, is free, over, or ours by an answer that got lost. */
  #mayTake(): boolean {
    if (!this.#observed) return false;
    const { holderIdentity } = this.#observed.lease.spec ?? {};
    if (!holderIdentity) return true;
    const oursUnheard =
      holderIdentity === this.#options.identity && epochOf(this.#observed.lease) === this.#claimed;
    return oursUnheard || this.#untilExpiry() <= 0;
  }

  /**
   * By our own clock, from when we saw the last change. By the one that nobody
   * sets and that stands still while the machine sleeps: rather late than early.
   */
  #untilExpiry(): number {
    if (!this.#observed) return Infinity;
    const { leaseDurationSeconds = this.#timing.leaseDurationMs / 1000 } = this.#observed.lease.spec ?? {};
    return leaseDurationSeconds * 1000 - (this.#clock.monotonic() - this.#observed.at);
  }

  async #take(): Promise<boolean> {
    const old = this.#observed?.lease;
    if (!old) return false;
    const transitions = (old.spec?.leaseTransitions ?? 0) + 1;
    return this.#claim(epochOf(old), (body) =>
      this.#options.client.update(
        leases,
        {
          ...old,
          metadata: { ...old.metadata, annotations: { ...old.metadata.annotations, ...body.annotations } },
          spec: { ...body.spec, leaseTransitions: transitions },
        },
        this.#callOptions(),
      ),
    );
  }

  async #takeNew(): Promise<boolean> {
    try {
      return await this.#claim(0, ({ annotations, spec }) =>
        this.#options.client.create(
          leases,
          {
            metadata: { ...this.#ref, annotations } as Lease['metadata'] & object,
            spec: { ...spec, leaseTransitions: 0 },
          },
          this.#callOptions(),
        ),
      );
    } catch (error) {
      if (!(error instanceof AlreadyExists)) this.#report(error);
      return false;
    }
  }

  async #claim(
    oldEpoch: number,
    write: (body: {
      annotations: Record<string, string>;
      spec: NonNullable<Lease['spec']>;
    }) => Promise<Stored<Lease>>,
  ): Promise<boolean> {
    const at = this.#now();
    const epoch = Math.max(oldEpoch + 1, this.#clock.now());
    this.#claimed = epoch;
    const time = microTime(this.#clock.now());
    const lease = await write({
      annotations: { [EPOCH_ANNOTATION]: String(epoch) },
      spec: { ...this.#spec(time), acquireTime: time },
    });
    this.#observe(lease);
    this.#renewedAt = at;
    this.#epoch = epoch;
    return this.isLeader();
  }

  async #renew(): Promise<'renewed' | 'taken' | 'failed'> {
    const held = this.#observed?.lease;
    if (!held) return 'failed';
    const at = this.#now();
    try {
      const time = microTime(this.#clock.now());
      const spec = { ...held.spec, ...this.#spec(time) };
      this.#observe(await this.#options.client.update(leases, { ...held, spec }, this.#callOptions()));
      this.#renewedAt = at;
      return 'renewed';
    } catch (error) {
      if (error instanceof Conflict || error instanceof NotFound) return this.#lookAgain(error);
      this.#report(error);
      return 'failed';
    }
  }

  /** Somebody wrote the Lease: an earlier renewal of ours, a label by hand, or another leader. */
  async #lookAgain(cause: Conflict | NotFound): Promise<'taken' | 'failed'> {
    this.#options.observer?.slowPath?.();
    if (cause instanceof NotFound) return 'taken';
    try {
      const lease = await this.#get();
      this.#observe(lease);
      return this.#isOurs(lease) ? 'failed' : 'taken';
    } catch (error) {
      this.#report(error);
      return error instanceof NotFound ? 'taken' : 'failed';
    }
  }

  /** The epoch stays in the Lease; the next one must be greater. */
  async #release(): Promise<void> {
    const options = { timeoutMs: this.#timing.retryPeriodMs, retry: false };
    const free = async ({ spec = {}, ...held }: Stored<Lease>): Promise<void> => {
      const { holderIdentity: _, ...others } = spec;
      const time = microTime(this.#clock.now());
      const freed = { ...others, leaseDurationSeconds: 1, renewTime: time, acquireTime: time };
      await this.#options.client.update(leases, { ...held, spec: freed }, options);
    };
    try {
      if (this.#observed) await free(this.#observed.lease);
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      // The renewal that stop() broke off had been carried out.
      const lease = await this.#options.client.get(leases, this.#ref, options);
      if (this.#isOurs(lease)) await free(lease);
    }
  }

  #isOurs(lease: Lease): boolean {
    return lease.spec?.holderIdentity === this.#options.identity && epochOf(lease) === this.#epoch;
  }

  #get(): Promise<Stored<Lease>> {
    return this.#options.client.get(leases, this.#ref, this.#callOptions());
  }

  #observe(lease: Stored<Lease>): void {
    if (this.#observed?.lease.metadata.resourceVersion === lease.metadata.resourceVersion) return;
    this.#observed = { lease, at: this.#clock.monotonic() };
  }

  #spec(renewTime: string): NonNullable<Lease['spec']> {
    return {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: Math.ceil(this.#timing.leaseDurationMs / 1000),
      renewTime,
    };
  }

  /** A call that hangs must leave time for a second one before the deadline, and none may outlast it. */
  #callOptions(): { timeoutMs: number; retry: false; signal: AbortSignal } {
    const half = this.#timing.renewDeadlineMs / 2;
    const timeoutMs = this.isLeader() ? Math.min(half, this.#termLeft()) : half;
    return { timeoutMs, retry: false, signal: this.#stopping.signal };
  }

  #now(): Moment {
    return { monotonic: this.#clock.monotonic(), wall: this.#clock.now() };
  }

  /** How long we lead without a renewal. Of the two clocks the one that says less: rather nobody leads than two. */
  #termLeft(): number {
    if (!this.#renewedAt) return 0;
    const { monotonic, wall } = this.#renewedAt;
    const elapsed = Math.max(this.#clock.monotonic() - monotonic, this.#clock.now() - wall);
    return Math.max(0, this.#timing.renewDeadlineMs - elapsed);
  }

  #name(): string {
    return `${this.#options.namespace}/${this.#options.name}`;
  }

  #report(error: unknown): void {
    if (!this.#stopping.signal.aborted) this.#options.onError?.(error);
  }
}

/** A sleep that somebody may end. */
class WakeUp {
  #controller = new AbortController();

  now(): void {
    this.#controller.abort();
  }

  async orAfter(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    await clock.sleep(ms, AbortSignal.any([signal, this.#controller.signal]));
    this.#controller = new AbortController();
  }
}

function epochOf(lease: Lease): number {
  const epoch = Number(lease.metadata?.annotations?.[EPOCH_ANNOTATION] ?? 0);
  return Number.isSafeInteger(epoch) ? epoch : 0;
}

/** As metav1.MicroTime wants it. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
