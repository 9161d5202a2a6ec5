/** What probes and metrics can read of a reflector. */
export type ReflectorState = 'idle' | 'listing' | 'watching' | 'backoff' | 'stopped';

export interface ReflectorHealth {
  readonly state: ReflectorState;
  readonly synced: boolean;
  /** Of the last event or bookmark. */
  readonly resourceVersion: string;
  readonly objects: number;
  /** When the last byte came, in milliseconds since 1970; 0 if none did. */
  readonly lastActivity: number;
  /** Nothing came for 3 minutes, though bookmarks should: the store may be old. */
  readonly stale: boolean;
  /** Why there is no watch now; undefined as long as there is one. */
  readonly lastError: unknown;
  /** Full lists, the first one included. */
  readonly relists: number;
  readonly reconnects: number;
  /** Changes that the watch did not tell of, found by the safety relist. */
  readonly misses: number;
  readonly handlerErrors: number;
}

export type RelistReason = 'start' | 'gone' | 'safety';
export type ReconnectReason = 'ended' | 'silent' | 'failed';

/** Hears of everything that metrics are made of. */
export interface ReflectorObserver {
  state?(state: ReflectorState): void;
  relisted?(reason: RelistReason): void;
  reconnected?(reason: ReconnectReason): void;
  missed?(count: number): void;
  handlerFailed?(key: string): void;
}

/** A handler threw; the reflector went on. */
export class HandlerError extends Error {
  readonly key: string;

  constructor(resource: string, key: string, cause: unknown) {
    super(
      `a handler of ${resource} "${key}" failed: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        cause,
      },
    );
    this.name = 'HandlerError';
    this.key = key;
  }
}

/** The watch did not tell of changes; the store has been corrected. */
export class MissedChanges extends Error {
  readonly keys: readonly string[];

  constructor(resource: string, keys: readonly string[]) {
    super(`the watch of ${resource} missed ${keys.length} changes, among them of "${keys[0] ?? ''}"`);
    this.name = 'MissedChanges';
    this.keys = keys;
  }
}
