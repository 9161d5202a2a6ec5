/** What a reflector does when its session with the server is over. Decides only; acts nowhere. */
import { type BackoffRange, jitteredBackoff } from './backoff.ts';
import { ApiError, Forbidden, Gone, NotFound } from './errors.ts';
import type { ReconnectReason } from './reflector-health.ts';

/** Why a session is over: the server ended it, nothing came any more, or it failed. */
export type Ending =
  { readonly why: 'ended' | 'silent' } | { readonly why: 'failed'; readonly error: unknown };

export interface Session {
  readonly ending: Ending;
  readonly lastedMs: number;
  /** Whether it was to begin with a list in the same stream. */
  readonly streamedList: boolean;
}

export interface Recovery {
  /** 0: at once. */
  readonly waitMs: number;
  /** Counts as a reconnect for this reason. */
  readonly reconnect?: ReconnectReason;
  /** The next session begins with a list that is not older than now. */
  readonly relist?: true;
  /** The server cannot stream lists. */
  readonly noStreams?: true;
  /** Worth a word to whoever runs this. */
  readonly report?: unknown;
}

export interface RecoveryTiming {
  readonly backoff: BackoffRange;
  /**
   * After 403 and 404: rights and CRDs come by human hands, so it begins slower;
   * but a server that has just started refuses what it will soon allow, so it
   * does not become as slow, whatever failed before.
   */
  readonly slowBackoff: BackoffRange;
  /** A session that lasted so long lets failures be forgotten. */
  readonly healthyAfterMs: number;
}

/** A watch that the server ends properly, but at once, is no reason to come back at once. */
const SHORT_SESSION_MS = 1_000;
/** A little longer than asked, so that all who were refused together do not come together. */
const RETRY_AFTER_JITTER = 0.1;

export class RecoveryPlan {
  readonly #timing: RecoveryTiming;
  readonly #random: () => number;
  #failures = 0;
  #refusals = 0;

  constructor(timing: RecoveryTiming, random: () => number) {
    this.#timing = timing;
    this.#random = random;
  }

  after({ ending, lastedMs, streamedList }: Session): Recovery {
    if (lastedMs >= this.#timing.healthyAfterMs) this.#failures = 0;
    this.#refusals = ending.why === 'failed' && isRefusal(ending.error) ? this.#refusals + 1 : 0;
    switch (ending.why) {
      case 'ended':
        return { reconnect: 'ended', waitMs: lastedMs < SHORT_SESSION_MS ? this.#backoff(undefined) : 0 };
      case 'silent':
        return { reconnect: 'silent', waitMs: 0 };
      case 'failed':
        return this.#afterFailure(ending.error, streamedList);
    }
  }

  #afterFailure(error: unknown, streamedList: boolean): Recovery {
    if (streamedList && refusesStreams(error)) return { noStreams: true, waitMs: 0 };
    // Once is normal after a long gap; a server that says so again and again is not asked in a loop.
    if (forgotVersion(error))
      return { relist: true, waitMs: this.#failures === 0 ? this.#free() : this.#backoff(error) };
    return { reconnect: 'failed', report: error, waitMs: this.#backoff(error) };
  }

  #free(): number {
    this.#failures++;
    return 0;
  }

  #backoff(error: unknown): number {
    const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
    if (asked !== undefined) return asked * (1 + this.#random() * RETRY_AFTER_JITTER);
    return this.#refusals > 0
      ? jitteredBackoff(this.#refusals, this.#timing.slowBackoff, this.#random)
      : jitteredBackoff(++this.#failures, this.#timing.backoff, this.#random);
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Forbidden || error instanceof NotFound;
}

/** An API server that cannot stream lists refuses the unknown option. */
function refusesStreams(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 422 || error.code === 400);
}

/** Too old, or from a future that a restored backup does not know. */
function forgotVersion(error: unknown): boolean {
  if (error instanceof Gone) return true;
  const causes = error instanceof ApiError ? (error.status.details?.causes ?? []) : [];
  return causes.some(({ reason }) => reason === 'ResourceVersionTooLarge');
}
