/**
 * Turns events into reconciles. Sources only put keys into the queue; workers
 * take them out, one per key at a time. A reconcile that throws is tried again
 * later; one that outlives its time is abandoned by its worker, but its key
 * stays taken until it really ends, so that no object is worked on twice.
 */
import { randomUUID } from 'node:crypto';
import type { Span } from '@opentelemetry/api';
import { type Clock, systemClock } from '../kube/clock.ts';
import { ApiError, Conflict } from '../kube/errors.ts';
import { errorOf } from '../kube/thrown.ts';
import type { Logger } from './logging.ts';
import type { ControllerMetrics } from './metrics.ts';
import { tracer, withSpan } from './tracing.ts';
import { type Priority, WorkQueue, type WorkQueueOptions } from './work-queue.ts';

export interface ReconcileContext {
  /** Aborted when the time is up or the controller stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly reconcileId: string;
}

/** Nothing: wait for the next event. */
export type ReconcileResult = void | { readonly requeueAfterMs: number };

export type Reconcile = (key: string, context: ReconcileContext) => Promise<ReconcileResult>;

/** A fault that trying again cannot mend: it is reported, and the key waits for the next event. */
export class TerminalError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TerminalError';
  }
}

export type Enqueue = (key: string, priority?: Priority) => void;

/** Starts to feed the queue, and gives the way to end that. */
export type Source = (enqueue: Enqueue) => () => void;

export interface ControllerOptions {
  readonly name: string;
  readonly reconcile: Reconcile;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  /** How many keys at once; default 4. */
  readonly workers?: number;
  /** Default 60 s. A reconcile does no slow work, so this is for faults, not for patience. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly queue?: Omit<WorkQueueOptions, 'clock' | 'observer'>;
}

type Outcome = 'success' | 'error' | 'requeue_after';

const DEFAULT_WORKERS = 4;
const DEFAULT_TIMEOUT_MS = 60_000;

export class Controller {
  readonly name: string;
  readonly #options: ControllerOptions;
  readonly #clock: Clock;
  readonly #queue: WorkQueue;
  readonly #sources: Source[] = [];
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  #workers: Promise<void>[] = [];
  #unsubscribe: (() => void)[] = [];

  constructor(options: ControllerOptions) {
    this.name = options.name;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#queue = new WorkQueue({ ...options.queue, clock: this.#clock, observer: options.metrics.queue });
    options.metrics.observeQueue(this.#queue);
  }

  /** Anything that knows of keys to look at: informers of this kind or others, channels, timers. */
  source(source: Source): this {
    this.#sources.push(source);
    return this;
  }

  get queue(): WorkQueue {
    return this.#queue;
  }

  start(): void {
    const count = this.#options.workers ?? DEFAULT_WORKERS;
    this.#options.metrics.workers(count);
    this.#unsubscribe = this.#sources.map((source) =>
      source((key, priority) => this.#queue.add(key, priority)),
    );
    this.#workers = Array.from({ length: count }, () => this.#work());
  }

  /** No new reconcile starts; those under way are told to end, and waited for. */
  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#queue.close();
    this.#stopping.abort(new Error(`controller ${this.name} stops`));
    await Promise.all(this.#workers);
    await Promise.allSettled(this.#running);
  }

  async #work(): Promise<void> {
    for (;;) {
      const key = await this.#queue.next();
      if (key === undefined) return;
      await this.#handle(key);
    }
  }

  /** Ends with the reconcile or with its time, whichever is first; never rejects. */
  async #handle(key: string): Promise<void> {
    const { metrics, timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    const overtime = new AbortController();
    const signal = AbortSignal.any([this.#stopping.signal, overtime.signal]);
    const reconcileId = randomUUID();
    const log = this.#options.log.child({ controller: this.name, object: key, reconcileId });
    const began = this.#clock.now();
    const finishActive = metrics.active();
    const run = this.#attempt(key, { signal, log, reconcileId }).finally(() => {
      finishActive();
      metrics.reconcileTime(this.#clock.now() - began);
      this.#queue.done(key);
    });
    this.#running.add(run);
    void run.finally(() => this.#running.delete(run));
    const { promise: timeUp, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(timeoutMs, () => {
      metrics.timedOut();
      log.error('reconcile exceeded its time; its worker goes on without it', { timeoutMs });
      overtime.abort(new Error(`reconcile of ${key} exceeded ${timeoutMs} ms`));
      resolve();
    });
    await Promise.race([run, timeUp]);
    cancel();
  }

  async #attempt(key: string, context: ReconcileContext): Promise<void> {
    const attributes = { 'taskflow.controller': this.name, 'taskflow.object': key };
    const outcome = await withSpan(tracer(), 'reconcile', attributes, (span) =>
      this.#settle(key, context, span),
    );
    this.#options.metrics.reconciled(outcome);
  }

  async #settle(key: string, context: ReconcileContext, span: Span): Promise<Outcome> {
    try {
      const result = await this.#options.reconcile(key, context);
      this.#queue.forget(key);
      if (!result) return 'success';
      this.#queue.addAfter(key, result.requeueAfterMs);
      return 'requeue_after';
    } catch (error) {
      if (this.#stopping.signal.aborted) return 'success';
      span.recordException(errorOf(error));
      this.#failed(key, error, context.log);
      return 'error';
    }
  }

  #failed(key: string, error: unknown, log: Logger): void {
    const { metrics } = this.#options;
    if (!(error instanceof Error)) metrics.panicked();
    if (error instanceof TerminalError) {
      metrics.terminalError();
      log.error('reconcile failed for good', { error });
      return;
    }
    const retryAfterMs = error instanceof ApiError ? error.retryAfterMs : undefined;
    const delayMs = Math.round(this.#queue.addRateLimited(key, retryAfterMs));
    // A conflict means that we saw an old version; the next try is the cure, not an incident.
    if (error instanceof Conflict) log.debug('reconcile found an outdated object', { error, delayMs });
    else log.error('reconcile failed', { error, delayMs, failures: this.#queue.failuresOf(key) });
  }
}
