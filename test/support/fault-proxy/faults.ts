/**
 * What can go wrong, and for which requests: the vocabulary of the fault
 * proxy, and the rules in force. Rules are asked in the order in which they
 * were injected. Latencies of all that match add up; of the others the first
 * decides.
 */
import type { IncomingHttpHeaders } from 'node:http';

export interface ProxiedRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly watch: boolean;
}

/** Every condition that is given must hold. */
export interface Match {
  readonly method?: string | readonly string[];
  readonly path?: RegExp;
  readonly watch?: boolean;
  readonly where?: (request: ProxiedRequest) => boolean;
}

export interface Occurrence {
  /** The rule ends after so many hits; without it, when it is removed. */
  readonly times?: number;
  /** Chance of a hit between 0 and 1, from a generator that `seed` makes repeatable. */
  readonly probability?: number;
  readonly seed?: number;
}

export type FaultAction =
  /** An answer with a Status object as the API server writes it; nothing is forwarded. */
  | {
      readonly kind: 'status';
      readonly code: number;
      readonly reason?: string;
      readonly message?: string;
      readonly retryAfterSeconds?: number;
    }
  /** Forwarded late. */
  | { readonly kind: 'latency'; readonly ms: number }
  /** `before`: the connection breaks and nothing was done. `after`: it was done, and the answer is lost. */
  | { readonly kind: 'reset'; readonly when: 'before' | 'after' }
  /**
   * The connection stays open and nothing comes. A watch gets its headers and
   * `afterEvents` events first (default 0). Other requests are not forwarded,
   * or with `after` are, but their answer never comes.
   */
  | { readonly kind: 'half-open'; readonly when?: 'before' | 'after'; readonly afterEvents?: number }
  /**
   * A watch ends after that time or so many events (at once by default):
   * broken off, or with `clean` properly, as the API server does at its time-out.
   */
  | {
      readonly kind: 'drop-watch';
      readonly afterMs?: number;
      readonly afterEvents?: number;
      readonly clean?: boolean;
    }
  /** A watch starts and says at once that its resource version is too old. */
  | { readonly kind: 'watch-gone' };

export type Fault = Match & Occurrence & FaultAction;

export interface InjectedFault {
  readonly hits: number;
  /** Settles with the first request that the fault hits. */
  readonly firstHit: Promise<void>;
  remove(): void;
}

export type DecidingFault = Exclude<FaultAction, { kind: 'latency' }>;

export interface Verdict {
  readonly delayMs: number;
  readonly fault: DecidingFault | undefined;
  /** For the record of the request: `latency, status 409`. */
  readonly description: string | undefined;
}

export class FaultRules {
  readonly #rules = new Set<Rule>();

  inject(fault: Fault): InjectedFault {
    const rule = new Rule(fault, () => this.#rules.delete(rule));
    this.#rules.add(rule);
    return rule;
  }

  clear(): void {
    this.#rules.clear();
  }

  judge(request: ProxiedRequest): Verdict {
    let delayMs = 0;
    let deciding: DecidingFault | undefined;
    const descriptions: string[] = [];
    for (const rule of this.#rules) {
      const { fault } = rule;
      if (fault.kind !== 'latency' && deciding) continue;
      if (!rule.strikes(request)) continue;
      descriptions.push(describe(fault));
      if (fault.kind === 'latency') delayMs += fault.ms;
      else deciding = fault;
    }
    return { delayMs, fault: deciding, description: descriptions.join(', ') || undefined };
  }
}

class Rule implements InjectedFault {
  readonly fault: Fault;
  readonly firstHit: Promise<void>;
  readonly remove: () => void;
  readonly #random: () => number;
  readonly #resolveFirstHit: () => void;
  #hits = 0;

  constructor(fault: Fault, remove: () => void) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.fault = fault;
    this.firstHit = promise;
    this.remove = remove;
    this.#resolveFirstHit = resolve;
    this.#random = seededRandom(fault.seed ?? 1);
  }

  get hits(): number {
    return this.#hits;
  }

  strikes(request: ProxiedRequest): boolean {
    const { fault } = this;
    if (!matches(fault, request)) return false;
    if (fault.probability !== undefined && this.#random() >= fault.probability) return false;
    this.#hits++;
    if (fault.times !== undefined && this.#hits >= fault.times) this.remove();
    this.#resolveFirstHit();
    return true;
  }
}

export function matches(match: Match & Partial<Pick<FaultAction, 'kind'>>, request: ProxiedRequest): boolean {
  if ((match.kind === 'drop-watch' || match.kind === 'watch-gone') && !request.watch) return false;
  const methods = typeof match.method === 'string' ? [match.method] : match.method;
  return (
    (methods?.includes(request.method) ?? true) &&
    // search, unlike test, is not led astray by the memory of a /g expression
    (match.path === undefined || request.path.search(match.path) !== -1) &&
    (match.watch === undefined || match.watch === request.watch) &&
    (match.where?.(request) ?? true)
  );
}

function describe(fault: FaultAction): string {
  switch (fault.kind) {
    case 'status':
      return `status ${fault.code}`;
    case 'reset':
      return `reset ${fault.when}`;
    case 'latency':
    case 'half-open':
    case 'drop-watch':
    case 'watch-gone':
      return fault.kind;
  }
}

/** Mulberry32: small, and even enough for a coin toss. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
