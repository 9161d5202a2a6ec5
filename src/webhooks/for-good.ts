/** Errors that waiting will not mend. */
import { ApiError, Conflict, TooManyRequests } from '../kube/errors.ts';

/** Roles and namespaces that were made a moment ago may not have reached the API server's authorizer yet. */
export const FORGIVENESS_MS = 3_000;

/** Whether only a change of rights, names or contents can help. */
export function isForGood(error: unknown): boolean {
  if (!(error instanceof ApiError) || error instanceof TooManyRequests || error instanceof Conflict)
    return false;
  return error.code >= 400 && error.code < 500;
}
