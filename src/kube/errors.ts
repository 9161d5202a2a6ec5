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
    readonly causes?: readonly StatusCause[];
    readonly retryAfterSeconds?: number;
  };
}

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** What was asked of the API server: `get pods "default/web"`. */
export interface Attempt {
  readonly verb: string;
  readonly resource: string;
  readonly object?: string | undefined;
  /** How often it was tried before; see retry.ts. */
  readonly retries?: number;
}

export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly status: ApiStatus;
  readonly retryAfterMs: number | undefined;
  /**
   * How often the call was sent before. After a retry, a Conflict or NotFound
   * may be the work of an earlier try whose answer was lost.
   */
  readonly retries: number;

  constructor(attempt: Attempt, code: number, status: ApiStatus, retryAfterMs?: number) {
    super(`${describeAttempt(attempt)}: ${describeStatus(code, status)}`);
    this.name = new.target.name;
    this.code = code;
    this.reason = status.reason ?? '';
    this.status = status;
    this.retryAfterMs = retryAfterMs ?? secondsToMs(status.details?.retryAfterSeconds);
    this.retries = attempt.retries ?? 0;
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
  get causes(): readonly StatusCause[] {
    return this.status.details?.causes ?? [];
  }
}

/** The API server could not be reached, or the connection broke before the answer was complete. */
export class ConnectionError extends Error {
  constructor(attempt: Attempt, cause: unknown) {
    super(`${describeAttempt(attempt)}: ${causeText(cause)}`, { cause });
    this.name = new.target.name;
  }
}

/** The time of the call was over, tries included. What it asked for may have been done. */
export class DeadlineExceeded extends ConnectionError {
  constructor(attempt: Attempt, timeoutMs: number) {
    super(attempt, new Error(`no answer within ${timeoutMs / 1000} s`));
  }
}

/** The caller's signal ended the call; `cause` is the signal's reason. */
export class RequestAborted extends ConnectionError {}

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

function describeAttempt({ verb, resource, object, retries = 0 }: Attempt): string {
  const tries = retries === 0 ? '' : ` (try ${retries + 1})`;
  return object === undefined || object === ''
    ? `${verb} ${resource}${tries}`
    : `${verb} ${resource} "${object}"${tries}`;
}

/** The server's message, and the causes that it does not name. */
function describeStatus(code: number, { message, reason, details }: ApiStatus): string {
  const text = message ?? reason ?? '';
  const unnamed = (details?.causes ?? []).filter(
    (cause) => cause.message !== undefined && !text.includes(cause.message),
  );
  const causes = unnamed.map(({ field, message: fault = '' }) => (field ? `${field}: ${fault}` : fault));
  return [text === '' ? `HTTP ${code}` : text, ...causes].join('; ');
}

/** undici says only `fetch failed` or `other side closed`; the code tells what that was. */
function causeText(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { code } = cause as NodeJS.ErrnoException;
  const text = cause.message === '' ? (code ?? cause.name) : cause.message;
  return code === undefined || text.includes(code) ? text : `${text} (${code})`;
}

function secondsToMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}
