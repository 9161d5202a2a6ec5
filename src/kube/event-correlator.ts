/**
 * Keeps events few, with the numbers of client-go, so that a fault in a loop
 * does not flood etcd: the same event again only raises a count; ten different
 * messages of the same reason within ten minutes are folded into one event;
 * and one object may cause 25 writes at once, then one every five minutes.
 */
import type { Clock } from './clock.ts';
import { LruMap } from './lru-map.ts';

/** What happened to which object. */
export interface Occurrence {
  /** The object, as text that no other object has. */
  readonly object: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

export interface Correlated {
  /** Equal for occurrences that are one event. */
  readonly key: string;
  readonly message: string;
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly firstAt: number;
  readonly lastAt: number;
}

const ALIKE = { max: 10, withinMs: 600_000 };
const BUCKET = { burst: 25, refillMs: 300_000 };
const REMEMBERED = 4096;
const COMBINED = '(combined from similar events): ';

interface Similar {
  readonly messages: Set<string>;
  lastAt: number;
}

export class EventCorrelator {
  readonly #clock: Clock;
  readonly #similar = new LruMap<string, Similar>(REMEMBERED);
  readonly #seen = new LruMap<string, { count: number; readonly firstAt: number }>(REMEMBERED);
  readonly #buckets = new LruMap<string, { tokens: number; at: number }>(REMEMBERED);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The event to write, or undefined if the object has had its share. */
  correlate(occurrence: Occurrence): Correlated | undefined {
    const now = this.#clock.now();
    const { key, message } = this.#aggregated(occurrence, now);
    const seen = this.#seen.get(key) ?? { count: 0, firstAt: now };
    seen.count++;
    this.#seen.set(key, seen);
    // Counted all the same: when it is written again, the count tells of what was not.
    if (!this.#mayWrite(occurrence.object, now)) return undefined;
    return { key, message, count: seen.count, firstAt: seen.firstAt, lastAt: now };
  }

  #aggregated({ object, type, reason, message }: Occurrence, now: number): { key: string; message: string } {
    const kind = JSON.stringify([object, type, reason]);
    let similar = this.#similar.get(kind);
    if (!similar || now - similar.lastAt > ALIKE.withinMs) similar = { messages: new Set(), lastAt: now };
    similar.lastAt = now;
    similar.messages.add(message);
    this.#similar.set(kind, similar);
    if (similar.messages.size < ALIKE.max) return { key: JSON.stringify([kind, message]), message };
    // Room for one more, so that the set does not grow.
    for (const one of similar.messages) {
      similar.messages.delete(one);
      break;
    }
    return { key: kind, message: `${COMBINED}${message}` };
  }

  #mayWrite(object: string, now: number): boolean {
    const bucket = this.#buckets.get(object) ?? { tokens: BUCKET.burst, at: now };
    bucket.tokens = Math.min(BUCKET.burst, bucket.tokens + (now - bucket.at) / BUCKET.refillMs);
    bucket.at = now;
    this.#buckets.set(object, bucket);
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }
}
