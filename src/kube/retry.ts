/**
 * Which calls are sent again, and when. A call whose answer was lost may have
 * been carried out; sending it twice must then do no harm.
 *
 * | call                                      | sent again                            | since                                            |
 * | ----------------------------------------- | ------------------------------------- | ------------------------------------------------ |
 * | get, list, discovery                      | on 429, 5xx, broken connection        | reading changes nothing                          |
 * | watch, text (health probes)               | never                                 | the reflector and the prober have their own pace |
 * | update with resourceVersion               | on 429, 5xx, broken connection        | the second one meets a Conflict                  |
 * | update without                            | when refused: 429, never connected    | would undo what others wrote in between          |
 * | merge/strategic patch with resourceVersion| on 429, 5xx, broken connection        | as update                                        |
 * | JSON patch that tests the resourceVersion | on 429, 5xx, broken connection        | as update (it fails with Invalid)                |
 * | other patches                             | when refused                          | as update without                                |
 * | server-side apply                         | on 429, 5xx, broken connection        | the same fields again are no change              |
 * | delete with uid or resourceVersion        | on 429, 5xx, broken connection        | cannot hit a successor of the same name          |
 * | delete without                            | when refused                          | could                                            |
 * | create                                    | when refused                          | a generated name would be made twice             |
 * | create of a subresource                   | only if never connected               | 429 of an eviction is an answer, not a refusal   |
 *
 * Besides, every call is sent again once with fresh credentials after a 401.
 * The deadline of a call is for all its tries together.
 */
import { type BackoffRange, jitteredBackoff } from './backoff.ts';
import { ApiError, ConnectionError, DeadlineExceeded, RequestAborted } from './errors.ts';

export type Repeatable = 'always' | 'when-refused' | 'when-unconnected' | 'never';

export interface RetryPolicy extends BackoffRange {
  /** The first one included; 1 is never again. */
  readonly maxTries: number;
}

export const DEFAULT_RETRY: RetryPolicy = { maxTries: 5, firstMs: 100, maxMs: 2_000 };

/** A little longer than asked, so that all who were refused together do not come together. */
const RETRY_AFTER_JITTER = 0.1;

/** What went wrong before a byte of the request was sent. */
const UNCONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** A server that we must not trust is not trusted on the second look either. */
const UNTRUSTED = /^(?:CERT_|ERR_TLS|ERR_SSL|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED)/;

/** How long to wait before the next try, if there is to be one. */
export function retryDelay(
  error: unknown,
  repeatable: Repeatable,
  tries: number,
  policy: RetryPolicy,
  random: () => number,
): number | undefined {
  if (tries >= policy.maxTries || !mayRepeat(error, repeatable)) return undefined;
  const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
  return asked === undefined
    ? jitteredBackoff(tries, policy, random)
    : asked * (1 + random() * RETRY_AFTER_JITTER);
}

function mayRepeat(error: unknown, repeatable: Repeatable): boolean {
  const fault = faultOf(error);
  switch (repeatable) {
    case 'always':
      return fault !== 'final';
    case 'when-refused':
      return fault === 'refused' || fault === 'unconnected';
    case 'when-unconnected':
      return fault === 'unconnected';
    case 'never':
      return false;
  }
}

type Fault = 'unconnected' | 'refused' | 'unknown' | 'final';

function faultOf(error: unknown): Fault {
  if (error instanceof ApiError) {
    if (error.code === 429) return 'refused';
    return error.code >= 500 && error.code !== 501 ? 'unknown' : 'final';
  }
  if (!(error instanceof ConnectionError)) return 'final';
  if (error instanceof DeadlineExceeded || error instanceof RequestAborted) return 'final';
  const code = codeOf(error.cause);
  if (UNCONNECTED.has(code)) return 'unconnected';
  return UNTRUSTED.test(code) ? 'final' : 'unknown';
}

function codeOf(cause: unknown): string {
  const code = cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined;
  return code ?? '';
}

type VersionedPatch =
  | { readonly kind: 'merge' | 'strategic' | 'apply'; readonly body: object }
  | { readonly kind: 'json'; readonly body: readonly object[] };

export function patchRepeatable(patch: VersionedPatch): Repeatable {
  switch (patch.kind) {
    case 'apply':
      return 'always';
    case 'merge':
    case 'strategic':
      return updateRepeatable(patch.body);
    case 'json':
      return patch.body.some(testsVersion) ? 'always' : 'when-refused';
  }
}

export function updateRepeatable(body: {
  readonly metadata?: { readonly resourceVersion?: string | undefined } | undefined;
}): Repeatable {
  return body.metadata?.resourceVersion === undefined ? 'when-refused' : 'always';
}

export function deleteRepeatable(preconditions: object | undefined): Repeatable {
  return preconditions === undefined || Object.keys(preconditions).length === 0 ? 'when-refused' : 'always';
}

function testsVersion(operation: { readonly op?: unknown; readonly path?: unknown }): boolean {
  return operation.op === 'test' && operation.path === '/metadata/resourceVersion';
}
