/**
 * Writes Kubernetes events. Recording never waits and never throws: events go
 * into a bounded buffer that one worker empties in the background. What comes
 * again while it waits there is merged, so a burst costs one write.
 *
 * core/v1 rather than events.k8s.io/v1: both are the same objects to the
 * server, and `kubectl describe` and `kubectl get events` read the former; but
 * only the former allows to change the message of an event that is counted
 * up, which folded events need to show the latest one.
 */
import { randomBytes } from 'node:crypto';
import { type BackoffRange, jitteredBackoff } from './backoff.ts';
import { type Event, events } from './builtin-resources.ts';
import type { KubeClient } from './client.ts';
import { type Clock, systemClock } from './clock.ts';
import { AlreadyExists, ApiError, ConnectionError, NotFound } from './errors.ts';
import { type Correlated, EventCorrelator } from './event-correlator.ts';
import { LruMap } from './lru-map.ts';
import { maskSecrets } from './mask-secrets.ts';
import type { KubeObject } from './resource-type.ts';
import { errorOf } from './thrown.ts';

export type EventType = 'Normal' | 'Warning';

/** Hears of everything that metrics are made of. */
export interface EventObserver {
  written?(): void;
  /** `limited`: the object has had its share. `full`: the buffer was. `failed`: the server did not take it. */
  dropped?(why: 'limited' | 'full' | 'failed'): void;
}

export interface EventRecorderOptions {
  readonly client: KubeClient;
  /** Who reports; `From` in kubectl describe. */
  readonly component: string;
  /** Which replica of it. */
  readonly instance?: string;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** How many events may wait; default 1000. */
  readonly capacity?: number;
  readonly observer?: EventObserver;
  readonly onError?: (error: unknown) => void;
}

const CAPACITY = 1_000;
const MAX_MESSAGE_BYTES = 1024;
const MAX_NAME = 253;
const TRIES = 4;
const BACKOFF: BackoffRange = { firstMs: 500, maxMs: 8_000 };
const FLUSH_MS = 5_000;

type NamedEvent = Event & { metadata: { name: string; namespace: string } };

/** An event object of ours. */
interface Known {
  readonly name: string;
  /** The server has it: only count, time and message are sent. */
  written: boolean;
}

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #clock: Clock;
  readonly #correlator: EventCorrelator;
  /** By the key of the correlator; insertion order is the order of writing. */
  readonly #waiting = new Map<string, NamedEvent>();
  readonly #known = new LruMap<string, Known>(4096);
  readonly #stopping = new AbortController();
  #worker: Promise<void> | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#correlator = new EventCorrelator(this.#clock);
  }

  /** `reason` is one word in CamelCase for machines, `message` a sentence for people. */
  event(object: KubeObject, type: EventType, reason: string, message: string): void {
    try {
      if (!this.#stopping.signal.aborted) this.#record(object, type, reason, message);
    } catch (error) {
      this.#report(error);
    }
  }

  /** Resolves when nothing waits any more, or the time is up. */
  async flush({ timeoutMs = FLUSH_MS }: { timeoutMs?: number } = {}): Promise<void> {
    const { promise: timeUp, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(timeoutMs, resolve);
    await Promise.race([this.#worker, timeUp]);
    cancel();
  }

  /** Flushes, then takes nothing more. */
  async stop(options: { timeoutMs?: number } = {}): Promise<void> {
    await this.flush(options);
    this.#stopping.abort();
    await this.#worker;
  }

  #record(object: KubeObject, type: EventType, reason: string, text: string): void {
    const message = cutToBytes(maskSecrets(text), MAX_MESSAGE_BYTES);
    const about = involved(object);
    const { resourceVersion: _, ...identity } = about;
    const correlated = this.#correlator.correlate({
      object: JSON.stringify(identity),
      type,
      reason,
      message,
    });
    if (!correlated) return this.#options.observer?.dropped?.('limited');
    const { key } = correlated;
    if (!this.#waiting.has(key) && this.#waiting.size >= (this.#options.capacity ?? CAPACITY))
      return this.#options.observer?.dropped?.('full');
    const known = this.#known.get(key) ?? { name: eventName(about.name), written: false };
    this.#known.set(key, known);
    this.#waiting.set(key, this.#eventOf(about, known.name, type, reason, correlated));
    this.#worker ??= this.#work();
  }

  #eventOf(
    about: Involved,
    name: string,
    type: EventType,
    reason: string,
    { message, count, firstAt, lastAt }: Correlated,
  ): NamedEvent {
    const { component, instance } = this.#options;
    return {
      // Events of cluster-wide objects are where kubectl looks for them.
      metadata: { name, namespace: about.namespace ?? 'default' },
      involvedObject: about,
      type,
      reason,
      message: cutToBytes(message, MAX_MESSAGE_BYTES),
      count,
      firstTimestamp: new Date(firstAt).toISOString(),
      lastTimestamp: new Date(lastAt).toISOString(),
      source: { component, ...(instance !== undefined && { host: instance }) },
      reportingComponent: component,
      reportingInstance: instance ?? '',
    };
  }

  async #work(): Promise<void> {
    for (const [key, event] of this.#waiting) {
      this.#waiting.delete(key);
      const known = this.#known.get(key) ?? { name: event.metadata.name, written: false };
      if (!this.#stopping.signal.aborted) await this.#deliver(event, known);
    }
    // At once, not when the promise is settled: the next event must find out that it needs a new worker.
    this.#worker = undefined;
  }

  /** Never rejects. */
  async #deliver(event: NamedEvent, known: Known): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#write(event, known.written);
        known.written = true;
        return this.#options.observer?.written?.();
      } catch (error) {
        if (tries >= TRIES || !isPassing(error) || this.#stopping.signal.aborted) {
          this.#options.observer?.dropped?.('failed');
          return this.#report(error);
        }
        const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
        const random = this.#options.random ?? Math.random;
        await this.#clock.sleep(asked ?? jitteredBackoff(tries, BACKOFF, random), this.#stopping.signal);
      }
    }
  }

  async #write(event: NamedEvent, written: boolean): Promise<void> {
    const { client } = this.#options;
    const options = { retry: false, signal: this.#stopping.signal };
    const { count, lastTimestamp, message } = event;
    try {
      if (!written) await client.create(events, event, options);
      else
        await client.patch(
          events,
          event.metadata,
          { kind: 'merge', body: { count, lastTimestamp, message } },
          options,
        );
    } catch (error) {
      // The answer to an earlier try was lost.
      if (error instanceof AlreadyExists) return;
      // The server keeps events for an hour.
      if (!written || !(error instanceof NotFound)) throw error;
      await client.create(events, { ...event, firstTimestamp: lastTimestamp ?? '' }, options);
    }
  }

  #report(error: unknown): void {
    try {
      this.#options.onError?.(errorOf(error));
    } catch {
      // Whoever cannot even log has nobody to be told.
    }
  }
}

type Involved = NonNullable<Event['involvedObject']> & { readonly name: string };

function involved({ apiVersion, kind, metadata = {} }: KubeObject): Involved {
  const { name, namespace, uid, resourceVersion } = metadata;
  if (apiVersion === undefined || kind === undefined || name === undefined)
    throw new Error(
      `an event needs an object with apiVersion, kind and name, not ${JSON.stringify({ apiVersion, kind, name })}`,
    );
  return {
    apiVersion,
    kind,
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
}

/** Names of some kinds are no names for events: `system:node`. */
function eventName(object: string): string {
  const suffix = `.${randomBytes(8).toString('hex')}`;
  const base = object
    .toLowerCase()
    .replaceAll(/[^a-z\d.-]/g, '-')
    .slice(0, MAX_NAME - suffix.length);
  return `${base.replace(/^[^a-z\d]+/, '').replace(/[^a-z\d]+$/, '') || 'event'}${suffix}`;
}

function cutToBytes(text: string, max: number): string {
  if (Buffer.byteLength(text) <= max) return text;
  const bytes = Buffer.from(text).subarray(0, max - 3);
  // The cut may be in the middle of a character.
  return `${bytes.toString('utf8').replace(/\uFFFD$/, '')}…`;
}

/** Whether the next try may do better. */
function isPassing(error: unknown): boolean {
  return (
    error instanceof ConnectionError ||
    (error instanceof ApiError && (error.code === 429 || error.code >= 500))
  );
}
