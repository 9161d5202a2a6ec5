/** The Status objects with which the API server refuses, as far as a client can tell them apart. */
import type { FaultAction, ProxiedRequest } from './faults.ts';

export interface StatusObject {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: Record<string, never>;
  readonly status: 'Failure';
  readonly message: string;
  readonly reason: string;
  readonly details?: Readonly<Record<string, string | number>>;
  readonly code: number;
}

type StatusFault = Extract<FaultAction, { kind: 'status' }>;

const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Expired',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};
/** `/apis/<group>/<version>` or `/api/<version>`, then perhaps a namespace, then resource and name. */
const OBJECT_PATH =
  /^\/api(?:s\/(?<group>[^/]+))?\/[^/]+(?:\/namespaces\/[^/]+(?=\/))?\/(?<resource>[^/]+)(?:\/(?<name>[^/]+))?/;

export function statusObject(fault: StatusFault, request: ProxiedRequest): StatusObject {
  const target = targetOf(request.path);
  const details = {
    ...target,
    ...(fault.retryAfterSeconds !== undefined && { retryAfterSeconds: fault.retryAfterSeconds }),
  };
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: fault.message ?? usualMessage(fault.code, target),
    reason: fault.reason ?? REASONS[fault.code] ?? 'Unknown',
    ...(Object.keys(details).length > 0 && { details }),
    code: fault.code,
  };
}

/** What a watch is told whose resource version is no longer kept. */
export function expiredStatus(request: ProxiedRequest): StatusObject {
  const asked = request.query.get('resourceVersion') ?? '0';
  const message = `too old resource version: ${asked} (${Number(asked) + 1000})`;
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: 'Expired',
    code: 410,
  };
}

/** Status names the resource, in plural, "kind". */
function targetOf(path: string): { name?: string; group?: string; kind?: string } {
  const { group, resource, name } = OBJECT_PATH.exec(path)?.groups ?? {};
  return {
    ...(name !== undefined && { name }),
    ...(group !== undefined && { group }),
    ...(resource !== undefined && { kind: resource }),
  };
}

function usualMessage(code: number, target: { name?: string; group?: string; kind?: string }): string {
  const { name = '', group, kind = 'unknown' } = target;
  const resource = group === undefined ? kind : `${kind}.${group}`;
  switch (code) {
    case 404:
      return `${resource} "${name}" not found`;
    case 409:
      return `Operation cannot be fulfilled on ${resource} "${name}": the object has been modified; please apply your changes to the latest version and try again`;
    case 410:
      return 'The provided continue parameter is too old to display a consistent list result.';
    case 429:
      return 'Too many requests, please try again later.';
    case 500:
      return 'Internal error occurred: injected by the fault proxy';
    case 503:
      return 'the server is currently unable to handle the request';
    default:
      return `injected by the fault proxy: ${code}`;
  }
}
