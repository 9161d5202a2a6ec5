/**
 * The Error of whatever a task threw. What a user reads in a status is its
 * message, so there is always one, even for what cannot be printed.
 */
import { errorOf } from '../kube/thrown.ts';

export function taskFailureOf(thrown: unknown): Error {
  const error = printableErrorOf(thrown);
  return error.message === '' ? withMessage(error) : error;
}

/** JSON knows neither cycles nor big integers. */
function printableErrorOf(thrown: unknown): Error {
  try {
    return errorOf(thrown);
  } catch {
    return new Error(`thrown: a value of type ${typeof thrown} that cannot be printed`, { cause: thrown });
  }
}

/** Its class decides what happens next, so it is kept where the message can be written. */
function withMessage(error: Error): Error {
  const message = `${error.name || 'Error'} without a message`;
  try {
    error.message = message;
    return error;
  } catch {
    return new Error(message, { cause: error });
  }
}
