/**
 * Answers of the API server that are not success, as small classes to branch
 * on. The text names verb, resource and object, so that a log line is enough.
 */

/** The part of a metav1.Status that callers use. */
export interface ApiStatus {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: {
    readonly causes?: readonly { reason?: string; message?: string; field?: string }[];
    readonly retryAfterSeconds?: number;
  };
}

/** What was asked of the API server: `get pods "default/web"`. */
export interface Attempt {
  readonly verb: string;
  readonly resource: string;
  readonly object?: string | undefined;
}

export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly status: ApiStatus;
  readonly retryAfterMs: number | undefined;

  constructor(attempt: Attempt, code: number, status: ApiStatus, retryAfterMs?: number) {
    super(`${describeAttempt(attempt)}: ${status.message ?? status.reason ?? `HTTP ${code}`}`);
    this.name = new.target.name;
    this.code = code;
    this.reason = status.reason ?? '';
    this.status = status;
    this.retryAfterMs = retryAfterMs ?? secondsToMs(status.details?.retryAfterSeconds);
  }
}

export class NotFound extends ApiError {}
export class AlreadyExists extends ApiError {}
export class Conflict extends ApiError {}
export class Forbidden extends ApiError {}
export class Unauthorized extends ApiError {}
export class Gone extends ApiError {}
export class TooManyRequests extends ApiError {}
export class Invalid extends ApiError {
  get causes(): readonly { reason?: string; message?: string; field?: string }[] {
    return this.status.details?.causes ?? [];
  }
}

/** The API server could not be reached, or the connection broke before the answer was complete. */
export class ConnectionError extends Error {
  constructor(attempt: Attempt, cause: unknown) {
    super(`${describeAttempt(attempt)}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
    this.name = 'ConnectionError';
  }
}

export function apiErrorFrom(
  attempt: Attempt,
  code: number,
  status: ApiStatus,
  retryAfterMs?: number,
): ApiError {
  return new (errorClass(code, status.reason))(attempt, code, status, retryAfterMs);
}

function errorClass(code: number, reason: string | undefined): typeof ApiError {
  switch (code) {
    case 401:
      return Unauthorized;
    case 403:
      return Forbidden;
    case 404:
      return NotFound;
    case 409:
      return reason === 'AlreadyExists' ? AlreadyExists : Conflict;
    case 410:
      return Gone;
    case 422:
      return Invalid;
    case 429:
      return TooManyRequests;
    default:
      return ApiError;
  }
}

function describeAttempt({ verb, resource, object }: Attempt): string {
  return object === undefined || object === '' ? `${verb} ${resource}` : `${verb} ${resource} "${object}"`;
}

function secondsToMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}
