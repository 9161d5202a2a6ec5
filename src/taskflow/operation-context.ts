/**
 * What the engine keeps in an object's status. The names of `operationContext`
 * and its failure rule are ob-operator's; everything optional is ours, and an
 * object that was written without it must load.
 */
import * as z from 'zod';
import { conditions, timestamp } from '../kube/schema/kubernetes-types.ts';

export const TASK_STATUSES = ['', 'pending', 'running', 'successful', 'failed'] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

export const FAILURE_STRATEGIES = ['retry over', 'retry from current', 'Pause', ''] as const;
export type FailureStrategy = (typeof FAILURE_STRATEGIES)[number];

export const FLOW_RESULTS = ['Succeeded', 'Failed', 'Canceled', 'Archived', 'Skipped'] as const;
export type FlowResult = (typeof FLOW_RESULTS)[number];

const count = () => z.int().min(0);

const failureRule = z.object({
  failureStrategy: z.enum(FAILURE_STRATEGIES).describe('What happens when a task fails.'),
  failureStatus: z.string().describe('State that the object gets when the flow fails.'),
  retryCount: count().optional().describe('Failures of this flow so far.'),
  maxRetry: count().optional().describe('How many failures are borne; 0 is the default of the operator.'),
});

const lastError = z.object({
  task: z.string().describe('Task that failed.'),
  attempt: count().describe('Its attempt.'),
  reason: z.string().describe('One word for the cause.'),
  message: z.string().describe('The cause.'),
  at: timestamp().describe('When it failed.'),
  retryable: z.boolean().describe('Whether trying again may help.'),
});

const liveTask = z.object({
  task: z.string().describe('Name of the task, or node of the graph.'),
  taskId: z.string().describe('Identity of this attempt.'),
  taskStatus: z.enum(TASK_STATUSES).describe('Where it is.'),
  step: z.string().optional().describe('Parallel step that it belongs to.'),
  attempt: count().describe('Attempt, from 1.'),
  startedAt: timestamp().optional().describe('When the attempt began.'),
  deadline: timestamp().optional().describe('When it must have ended.'),
  nextAt: timestamp().optional().describe('Not started before this moment.'),
  waitingFor: z.string().optional().describe('What it waits for.'),
  interruptions: count().optional().describe('Attempts that were lost to restarts of the operator.'),
  lastError: lastError.optional().describe('Its last failure.'),
});

const finishedTask = z.object({
  task: z.string().describe('Name of the task.'),
  attempts: count().describe('How many attempts it took.'),
  durationMs: count().describe('From its first start to its end, in milliseconds.'),
  result: z.enum(['successful', 'failed', 'skipped', 'canceled']).describe('How it ended.'),
  error: z.string().optional().describe('Why it did not succeed.'),
});

const operationContext = z
  .object({
    name: z.string().describe('Name of the flow.'),
    tasks: z.array(z.string()).describe('Its tasks in order.'),
    task: z.string().describe('The current task.'),
    idx: count().describe('How many tasks were begun.'),
    taskStatus: z.enum(TASK_STATUSES).describe('Where the current task is.'),
    taskId: z.string().describe('Identity of the current attempt.'),
    targetStatus: z.string().describe('State that the object gets when the flow has succeeded.'),
    failureRule: failureRule.describe('What happens when a task fails.'),
    flowId: z.string().optional().describe('Identity of this run of the flow.'),
    generation: count().optional().describe('Generation of the object that the flow was planned from.'),
    startStatus: z.string().optional().describe('State that the object had when the flow began.'),
    startedAt: timestamp().optional().describe('When the flow began.'),
    taskStartedAt: timestamp().optional().describe('When the current attempt began.'),
    updatedAt: timestamp().optional().describe('When the flow moved last.'),
    deadline: timestamp().optional().describe('When the flow must have ended.'),
    attempt: count().optional().describe('Attempt of the current task, from 1.'),
    nextAttemptAt: timestamp().optional().describe('The next attempt is not made before this moment.'),
    waitingFor: z.string().optional().describe('What the current task waits for.'),
    owner: z
      .object({ holder: z.string().describe('Replica.'), epoch: count().describe('Term of its lease.') })
      .optional()
      .describe('Who runs the current task.'),
    interruptions: count().optional().describe('Attempts that were lost to restarts of the operator.'),
    progress: z
      .object({
        percent: z.number().min(0).max(100).optional().describe('How much is done.'),
        message: z.string().optional().describe('What it is at.'),
        heartbeatAt: timestamp().describe('When the task said so.'),
      })
      .optional()
      .describe('Last sign of life of the current task.'),
    checkpoint: z
      .record(z.string(), z.string())
      .optional()
      .describe('What the task needs to go on after a restart.'),
    lastError: lastError.optional().describe('Last failure of the flow.'),
    running: z.array(liveTask).optional().describe('Live tasks of a parallel step or of a graph.'),
    finished: z.array(finishedTask).optional().describe('Tasks that have ended.'),
    compensating: z.boolean().optional().describe('Whether the flow is being undone.'),
    undoneFor: z.enum(FLOW_RESULTS).optional().describe('How the flow ended that is being undone.'),
    cancelRequested: z
      .object({
        by: z.string().describe('Who asked for it.'),
        at: timestamp().describe('When.'),
        reason: z.string().describe('Why.'),
      })
      .optional()
      .describe('A cancel that was accepted.'),
  })
  .describe('The flow that the object is in; absent when there is none.');

const finishedFlow = z.object({
  flowId: z.string().describe('Identity of the run.'),
  name: z.string().describe('Name of the flow.'),
  result: z.enum(FLOW_RESULTS).describe('How it ended.'),
  startedAt: timestamp().describe('When it began.'),
  finishedAt: timestamp().describe('When it ended.'),
  fromStatus: z.string().optional().describe('State that the object had when it began.'),
  error: z.string().optional().describe('Why it did not succeed.'),
  tasks: z.array(finishedTask).describe('Its tasks.'),
});

const consecutiveFailures = z.object({
  flow: z.string().describe('Flow that keeps failing.'),
  count: count().describe('How often in a row.'),
  nextAttemptAt: timestamp().optional().describe('It does not begin again before this moment.'),
});

/** Every kind with flows has these beside its own status fields. */
export const engineStatusShape = {
  operationContext: operationContext.optional(),
  operationHistory: z.array(finishedFlow).max(10).optional().describe('The last flows, the newest first.'),
  consecutiveFailures: consecutiveFailures
    .optional()
    .describe('Failures in a row of one flow; gone when it succeeds.'),
  acceptedCommands: z
    .record(z.string(), z.string())
    .optional()
    .describe('Command annotations that were carried out and are about to be removed.'),
  observedGeneration: count().optional().describe('Generation that the status speaks about.'),
  conditions: conditions().optional(),
};

export type FailureRule = z.output<typeof failureRule>;
export type LastError = z.output<typeof lastError>;
export type LiveTask = z.output<typeof liveTask>;
export type FinishedTask = z.output<typeof finishedTask>;
export type FinishedFlow = z.output<typeof finishedFlow>;
export type OperationContext = z.output<typeof operationContext>;
export type ConsecutiveFailures = z.output<typeof consecutiveFailures>;
type EngineStatusFields = z.ZodObject<typeof engineStatusShape>;
/** The engine's part of a status, but for the state, whose field differs by kind. */
export type EngineStatus = z.output<EngineStatusFields>;
