/** What is told of an error in status and events: short, and without secrets. */
import { maskSecrets } from '../kube/mask-secrets.ts';
import { errorOf } from '../kube/thrown.ts';
import { CanceledError, NotReady, PermanentError } from '../task-manager/errors.ts';
import type { TaskResult } from '../task-manager/task-manager.ts';
import type { LastError } from './operation-context.ts';
import type { TaskOutcome } from './task-definition.ts';
import type { Outcome } from './world.ts';

const MOST_TEXT = 1024;

export function reportOf(error: Error): Pick<LastError, 'reason' | 'message' | 'retryable'> {
  const permanent = error instanceof PermanentError;
  return {
    reason: permanent ? error.reason : reasonOf(error),
    message: cut(maskSecrets(error.message === '' ? error.name : error.message)),
    retryable: !permanent,
  };
}

/** What the result of a task means for its flow. */
export function outcomeOf(result: TaskResult): Outcome {
  if (result.status === 'successful') return outcomeOfValue(result.value as TaskOutcome, result.finishedAt);
  const { error } = result;
  if (error instanceof NotReady)
    return { kind: 'wait', at: result.finishedAt, ms: error.ms, reason: cut(maskSecrets(error.message)) };
  if (error instanceof CanceledError) return { kind: 'canceled' };
  return { kind: 'failed', error: reportOf(errorOf(error)) };
}

function outcomeOfValue(value: TaskOutcome, at: number): Outcome {
  if (typeof value !== 'object') return { kind: 'done' };
  const { status, wait } = value;
  if (!wait) return { kind: 'done', status };
  return {
    kind: 'wait',
    at,
    ms: wait.ms,
    reason: cut(maskSecrets(wait.reason)),
    status,
    checkpoint: value.checkpoint,
  };
}

/** `reason` must be one word: and shorter than the class where the class says it twice. */
function reasonOf({ name }: Error): string {
  if (name === 'HeartbeatTimeoutError') return 'HeartbeatTimeout';
  return /^[A-Za-z]\w*$/.test(name) ? name : 'Error';
}

function cut(text: string): string {
  return text.length <= MOST_TEXT ? text : `${text.slice(0, MOST_TEXT - 1)}…`;
}
