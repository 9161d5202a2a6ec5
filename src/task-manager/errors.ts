/** Why a task did not succeed, as far as the engine treats it differently from any other error. */

/** Trying again cannot help. */
export class PermanentError extends Error {
  readonly reason: string;

  constructor(
    message: string,
    { reason = 'PermanentError', ...options }: ErrorOptions & { reason?: string } = {},
  ) {
    super(message, options);
    this.name = 'PermanentError';
    this.reason = reason;
  }
}

export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

export class HeartbeatTimeoutError extends Error {
  override readonly name = 'HeartbeatTimeoutError';
}

/** The end was asked for: no failure. */
export class CanceledError extends Error {
  override readonly name = 'CanceledError';
}

/** The same as returning `ctx.wait(ms, reason)`, from deep inside. */
export class NotReady extends Error {
  readonly ms: number;

  constructor(ms: number, reason: string) {
    super(reason);
    this.name = 'NotReady';
    this.ms = ms;
  }
}
