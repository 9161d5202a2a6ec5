/** What a task gets, outside of an operator. */
import { Writable } from 'node:stream';
import type { KubeClient } from '../kube/client.ts';
import { type Clock, systemClock } from '../kube/clock.ts';
import { objectKey, type Stored } from '../kube/resource-type.ts';
import type { DefinedKind } from '../resource-managers/define-kind.ts';
import { loadConfig } from '../runtime/config/load.ts';
import { createLogger } from '../runtime/logging.ts';
import type { TaskContext } from '../taskflow/task-definition.ts';

export interface TaskContextOptions {
  readonly object: Stored;
  readonly client: KubeClient;
  /** Checkpoints; what the task saves is added. */
  readonly saved: Record<string, string>;
  readonly item?: string;
  readonly attempt?: number;
  readonly clock?: Clock;
}

export function taskContext(
  { schema }: DefinedKind,
  task: string,
  { object, client, saved, item, attempt = 1, clock = systemClock }: TaskContextOptions,
): TaskContext {
  const { name, namespace } = object.metadata;
  const wait: TaskContext['wait'] = (ms, reason) => ({ wait: { ms, reason } });
  return {
    object: structuredClone(object),
    key: objectKey({ name, namespace }),
    flow: 'test',
    flowId: 'test',
    task,
    taskId: 'test',
    attempt,
    item,
    saved: { ...saved },
    signal: new AbortController().signal,
    client,
    log: createLogger({ format: 'json', verbosity: 0, stream: nowhere() }),
    config: loadConfig({ env: {}, defaultFiles: [] }),
    clock,
    fence: { holder: 'test', epoch: 1 },
    guard: async () => {},
    event: () => {},
    heartbeat: () => {},
    async checkpoint(entries) {
      Object.assign(saved, entries);
    },
    wait,
    waitUntil: async (probe, { intervalMs = 5_000, reason = 'not ready yet' } = {}) =>
      (await probe()) ? undefined : wait(intervalMs, reason),
    refresh: () => client.get(schema, { name, namespace }),
  };
}

function nowhere(): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done() });
}
