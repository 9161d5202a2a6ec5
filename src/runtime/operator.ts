/**
 * The life of the operator process. Components start phase by phase; what only
 * the leader may do starts when the lease is ours and ends with the process,
 * because nobody can prove that work of a lost term has really stopped. So a
 * lost lease means exit, and the restart begins as a standby with warm caches.
 */
import type { Clock } from '../kube/clock.ts';
import { systemClock } from '../kube/clock.ts';
import type { Logger } from './logging.ts';

/** In the order of start; stopped in reverse. */
export const PHASES = ['certificates', 'caches', 'webhooks', 'leader', 'controllers'] as const;
export type Phase = (typeof PHASES)[number];

export interface Component {
  readonly name: string;
  readonly phase: Exclude<Phase, 'leader'>;
  start(signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/** What the operator needs of a leader election. */
export interface Leadership {
  start(): void;
  /** Resolves when we lead. */
  readonly leading: Promise<void>;
  /** Resolves when we led and no longer do. */
  readonly lost: Promise<Error>;
  /** Gives the lease back, so that the next leader need not wait for its end. */
  stop(): Promise<void>;
}

export interface OperatorOptions {
  readonly components: readonly Component[];
  /** Absent: a single replica that always leads. */
  readonly leadership?: Leadership;
  readonly log: Logger;
  /** Aborted to stop in order: SIGTERM. */
  readonly stop: AbortSignal;
  /** How long stopping may take; default 25 s. */
  readonly graceMs?: number;
  readonly clock?: Clock;
  readonly onPhase?: (phase: Phase | 'running' | 'stopping') => void;
}

export const EXIT = { stopped: 0, failed: 1 } as const;

const DEFAULT_GRACE_MS = 25_000;
const LOST_LEASE_GRACE_MS = 5_000;

type Ending =
  | { readonly why: 'asked' }
  | { readonly why: 'lease lost'; readonly error: Error }
  | { readonly why: 'failed'; readonly error: unknown };

/** Runs until told to stop; the result is the exit code. */
export async function runOperator(options: OperatorOptions): Promise<number> {
  const life = new OperatorLife(options);
  const ending = await life.runUntilEnd();
  return life.end(ending);
}

class OperatorLife {
  readonly #options: OperatorOptions;
  readonly #clock: Clock;
  readonly #started: Component[] = [];
  readonly #over = new AbortController();

  constructor(options: OperatorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  async runUntilEnd(): Promise<Ending> {
    const { stop, leadership } = this.#options;
    const asked = aborted(stop).then((): Ending => ({ why: 'asked' }));
    const running = this.#start().then(
      () => new Promise<never>(() => {}),
      (error: unknown): Ending => (stop.aborted ? { why: 'asked' } : { why: 'failed', error }),
    );
    const lost = leadership?.lost.then((error): Ending => ({ why: 'lease lost', error }));
    return Promise.race([asked, running, ...(lost ? [lost] : [])]);
  }

  async end(ending: Ending): Promise<number> {
    const { log, graceMs = DEFAULT_GRACE_MS, onPhase } = this.#options;
    onPhase?.('stopping');
    log.info('operator stops', { why: ending.why, ...('error' in ending && { error: ending.error }) });
    this.#over.abort(new Error(`the operator stops: ${ending.why}`));
    const withinMs = ending.why === 'lease lost' ? LOST_LEASE_GRACE_MS : graceMs;
    const { promise: timeUp, resolve } = Promise.withResolvers<'time up'>();
    const cancel = this.#clock.after(withinMs, () => resolve('time up'));
    const outcome = await Promise.race([this.#stopAll(ending), timeUp]);
    cancel();
    if (outcome === 'time up') log.error('operator did not stop in time', { withinMs });
    return ending.why === 'asked' && outcome !== 'time up' ? EXIT.stopped : EXIT.failed;
  }

  async #start(): Promise<void> {
    for (const phase of PHASES) {
      this.#over.signal.throwIfAborted();
      this.#options.onPhase?.(phase);
      await (phase === 'leader' ? this.#awaitLeadership() : this.#startPhase(phase));
    }
    this.#options.onPhase?.('running');
    this.#options.log.info('operator runs');
  }

  async #startPhase(phase: Phase): Promise<void> {
    const components = this.#options.components.filter((component) => component.phase === phase);
    await Promise.all(
      components.map(async (component) => {
        // Noted before it is up: a start that fails half-way has something to stop, too.
        this.#started.push(component);
        await component.start(this.#over.signal);
        this.#options.log.debug('component started', { component: component.name });
      }),
    );
  }

  async #awaitLeadership(): Promise<void> {
    const { leadership, log } = this.#options;
    if (!leadership) return;
    leadership.start();
    log.info('operator waits to lead');
    await Promise.race([leadership.leading, aborted(this.#over.signal)]);
    this.#over.signal.throwIfAborted();
    log.info('operator leads');
  }

  /** Leader's work first, then the lease, so that the next leader never meets ours; then the rest. */
  async #stopAll(ending: Ending): Promise<void> {
    await this.#stopPhase('controllers');
    // A lost lease is another's by now.
    if (ending.why !== 'lease lost')
      await this.#guarded('leader election', () => this.#options.leadership?.stop());
    for (const phase of PHASES.toReversed()) if (phase !== 'controllers') await this.#stopPhase(phase);
  }

  async #stopPhase(phase: Phase): Promise<void> {
    const components = this.#started.filter((component) => component.phase === phase);
    await Promise.all(components.map((component) => this.#guarded(component.name, () => component.stop())));
  }

  /** One component that cannot stop must not keep the others from it. */
  async #guarded(name: string, stop: () => Promise<void> | undefined): Promise<void> {
    try {
      await stop();
    } catch (error) {
      this.#options.log.error('component did not stop cleanly', { component: name, error });
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
