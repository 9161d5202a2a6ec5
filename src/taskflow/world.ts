/** What a transition is told of the world, and what it wants done there. Data only: the coordinator does the rest. */
import type { LastError } from './operation-context.ts';

/** How one attempt of a task ended. */
export type Outcome =
  | { readonly kind: 'done'; readonly status?: object | undefined }
  | {
      readonly kind: 'wait';
      /** When it said so. */
      readonly at: number;
      readonly ms: number;
      readonly reason: string;
      readonly status?: object | undefined;
      readonly checkpoint?: Readonly<Record<string, string>> | undefined;
    }
  | { readonly kind: 'failed'; readonly error: Pick<LastError, 'reason' | 'message' | 'retryable'> }
  /** Its end was asked for. */
  | { readonly kind: 'canceled' };

/** What this process knows of an attempt. */
export type AttemptView =
  | {
      readonly state: 'working';
      readonly progress?: { percent?: number; message?: string; heartbeatAt: string };
      /** Entries that the task wants stored. */
      readonly checkpoint?: Readonly<Record<string, string>>;
    }
  | { readonly state: 'settled'; readonly outcome: Outcome }
  /** Ours, claimed by a write whose answer never came; it has not begun. */
  | { readonly state: 'unstarted' }
  | { readonly state: 'unknown' };

export interface Owner {
  readonly holder: string;
  readonly epoch: number;
}

export interface RetryLimits {
  /** For flows that name none. */
  readonly maxRetry: number;
  readonly backoffThreshold: number;
  readonly maxDelayMs: number;
}

export interface World {
  readonly now: number;
  readonly self: Owner;
  readonly paused: boolean;
  /** Something has changed that tasks may wait for: they are asked now. */
  readonly nudged: boolean;
  readonly limits: RetryLimits;
  readonly view: (taskId: string) => AttemptView;
  readonly newId: () => string;
  /** From 0 to 1. */
  readonly random: () => number;
}

export interface StartEffect {
  readonly kind: 'start';
  readonly taskId: string;
  /** Name of the task, member or node. */
  readonly task: string;
  readonly attempt: number;
  readonly reattach: boolean;
  /** What is left of the time of the attempt. */
  readonly timeoutMs: number;
  /** Of a parallel step or a graph; else ''. */
  readonly branch: string;
}

export interface EventEffect {
  readonly kind: 'event';
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** Carried out after the status that goes with them is stored. */
export type Effect =
  StartEffect | EventEffect | { readonly kind: 'abort'; readonly taskId: string; readonly reason: string };

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

export function event(type: EventEffect['type'], reason: string, message: string): EventEffect {
  return { kind: 'event', type, reason, message };
}
