/**
 * The life of one task within a flow, as a pure function: claimed, running,
 * waiting, settled. Linear flows have one at a time; parallel steps and graphs
 * have many.
 */
import type { LastError, LiveTask } from './operation-context.ts';
import { type Effect, event, iso, type Outcome, type Owner, type World } from './world.ts';

/** What the machine needs to know of a task's definition. */
export interface TaskRules {
  readonly timeoutMs: number;
  readonly onInterrupt: 'rerun' | 'reattach' | 'fail';
}

export interface Attempted {
  readonly slot: LiveTask;
  readonly effects: readonly Effect[];
  /** Changes of the object's status that the task asked for. */
  readonly patches: readonly object[];
  readonly settled?: 'successful' | 'failed' | 'canceled';
  /** When to look again, if nothing happens before. */
  readonly until?: number;
  readonly progress?: { percent?: number; message?: string; heartbeatAt: string };
  readonly checkpoint?: Readonly<Record<string, string>>;
  /** The attempt is the first of its task, or begins anew: what was saved for an earlier one is void. */
  readonly claimed?: boolean;
}

export const DEFAULT_TIMEOUT_MS = 1_800_000;
const MAX_INTERRUPTIONS = 20;

export function freshSlot(task: string, step?: string): LiveTask {
  return { task, taskId: '', taskStatus: 'pending', attempt: 1, ...(step !== undefined && { step }) };
}

/** One step of the attempt; again until it settles or has to wait. */
export function advanceAttempt(
  slot: LiveTask,
  rules: TaskRules | undefined,
  world: World,
  context: { readonly owner: Owner | undefined; readonly branch: string },
): Attempted {
  switch (slot.taskStatus) {
    case '':
      return claim(slot, rules, world, context.branch, false);
    case 'pending':
      return slot.taskId === ''
        ? claim(slot, rules, world, context.branch, false)
        : waitOn(slot, slot.taskId, rules, world, context.branch);
    case 'running':
      return observe(slot, rules, world, context);
    case 'successful':
    case 'failed':
      return { slot, effects: [], patches: [], settled: slot.taskStatus };
  }
}

function claim(
  slot: LiveTask,
  rules: TaskRules | undefined,
  world: World,
  branch: string,
  reattach: boolean,
): Attempted {
  if (!rules)
    return fail(slot, world, {
      reason: 'UnknownTask',
      message: `no task "${slot.task}" is registered; was the operator downgraded?`,
      retryable: false,
    });
  if (world.paused) return { slot, effects: [], patches: [] };
  const due = slot.nextAt === undefined ? 0 : Date.parse(slot.nextAt);
  const asked = world.nudged && slot.waitingFor !== undefined;
  if (due > world.now && !asked) return { slot, effects: [], patches: [], until: due };
  const startedAt = slot.startedAt ?? iso(world.now);
  const timeoutMs = rules.timeoutMs - (world.now - Date.parse(startedAt));
  if (timeoutMs <= 0)
    return fail(slot, world, {
      reason: 'TimeoutError',
      message: `not done after ${rules.timeoutMs} ms; it waited for: ${slot.waitingFor ?? 'nothing'}`,
      retryable: true,
    });
  const { nextAt: _, ...rest } = slot;
  const taskId = world.newId();
  return {
    slot: { ...rest, taskStatus: 'running', taskId, startedAt },
    effects: [{ kind: 'start', taskId, task: slot.task, attempt: slot.attempt, reattach, timeoutMs, branch }],
    patches: [],
    claimed: true,
  };
}

/**
 * The task waits, and the id of its next run is stored already. So it can be
 * run again and again without a write, as long as it says the same: what is
 * stored then is true, and after a crash it is simply asked once more.
 */
function waitOn(
  slot: LiveTask,
  taskId: string,
  rules: TaskRules | undefined,
  world: World,
  branch: string,
): Attempted {
  const view = world.view(taskId);
  const stays: Attempted = { slot, effects: [], patches: [] };
  if (view.state === 'working') return stays;
  const outcome = view.state === 'settled' ? view.outcome : undefined;
  if (outcome && !isSameWait(outcome, slot)) return settle(slot, outcome, rules, world);
  const due = outcome ? outcome.at + outcome.ms : Date.parse(slot.nextAt ?? iso(0));
  if (due > world.now && !world.nudged) return { ...stays, until: due };
  const claimed = claim({ ...slot, nextAt: iso(0) }, rules, world, branch, false);
  if (claimed.settled !== undefined) return claimed;
  return {
    ...stays,
    effects: claimed.effects.map((effect) => (effect.kind === 'start' ? { ...effect, taskId } : effect)),
  };
}

function isSameWait(outcome: Outcome, slot: LiveTask): outcome is Extract<Outcome, { kind: 'wait' }> {
  return (
    outcome.kind === 'wait' &&
    outcome.reason === slot.waitingFor &&
    outcome.status === undefined &&
    outcome.checkpoint === undefined
  );
}

function observe(
  slot: LiveTask,
  rules: TaskRules | undefined,
  world: World,
  { owner, branch }: { readonly owner: Owner | undefined; readonly branch: string },
): Attempted {
  const view = world.view(slot.taskId);
  switch (view.state) {
    case 'working': {
      const { progress, checkpoint } = view;
      return {
        slot,
        effects: [],
        patches: [],
        ...(progress && { progress }),
        ...(checkpoint && { checkpoint }),
      };
    }
    case 'unstarted':
      return startAgain(slot, rules, world, branch);
    case 'settled':
      return settle(slot, view.outcome, rules, world);
    case 'unknown':
      return lost(slot, rules, world, owner, branch);
  }
}

/** The claim is stored, the attempt has not begun: begin it. */
function startAgain(slot: LiveTask, rules: TaskRules | undefined, world: World, branch: string): Attempted {
  const { taskId, task, attempt } = slot;
  const startedAt = slot.startedAt === undefined ? world.now : Date.parse(slot.startedAt);
  const timeoutMs = Math.max(1, (rules?.timeoutMs ?? DEFAULT_TIMEOUT_MS) - (world.now - startedAt));
  const reattach = rules?.onInterrupt === 'reattach' && (slot.interruptions ?? 0) > 0;
  return {
    slot,
    effects: [{ kind: 'start', taskId, task, attempt, reattach, timeoutMs, branch }],
    patches: [],
  };
}

function settle(slot: LiveTask, outcome: Outcome, rules: TaskRules | undefined, world: World): Attempted {
  switch (outcome.kind) {
    case 'done': {
      const { waitingFor: _, ...rest } = slot;
      return {
        slot: { ...rest, taskStatus: 'successful' },
        effects: [],
        patches: outcome.status ? [outcome.status] : [],
        settled: 'successful',
      };
    }
    case 'wait': {
      const { ms, reason, status, checkpoint } = outcome;
      const due = world.now + ms;
      const taskId = rules?.onInterrupt === 'rerun' ? world.newId() : '';
      return {
        slot: { ...slot, taskStatus: 'pending', taskId, nextAt: iso(due), waitingFor: reason },
        effects: [],
        patches: status ? [status] : [],
        until: due,
        ...(checkpoint && { checkpoint }),
      };
    }
    case 'failed':
      return fail(slot, world, outcome.error);
    case 'canceled':
      return { slot, effects: [], patches: [], settled: 'canceled' };
  }
}

/** Nobody here knows the attempt: its process ended, or it was ours and its result is gone. */
function lost(
  slot: LiveTask,
  rules: TaskRules | undefined,
  world: World,
  owner: Owner | undefined,
  branch: string,
): Attempted {
  if (owner?.epoch === world.self.epoch)
    return fail(slot, world, {
      reason: 'ResultLost',
      message: 'the result of the task was lost',
      retryable: true,
    });
  // Nothing is started while paused; what was interrupted is found so again afterwards.
  if (world.paused) return { slot, effects: [], patches: [] };
  const interruptions = (slot.interruptions ?? 0) + 1;
  const told = event(
    'Normal',
    'TaskInterrupted',
    `task "${slot.task}" was interrupted by a restart of the operator (${interruptions})`,
  );
  const { startedAt: _, ...rest } = slot;
  const interrupted: LiveTask = { ...rest, interruptions, taskStatus: 'pending', taskId: '' };
  if (rules?.onInterrupt === 'fail' || interruptions > MAX_INTERRUPTIONS) {
    const failed = fail(interrupted, world, {
      reason: 'Interrupted',
      message: `interrupted ${interruptions} times by restarts of the operator`,
      retryable: true,
    });
    return { ...failed, effects: [told, ...failed.effects] };
  }
  const again = claim(interrupted, rules, world, branch, rules?.onInterrupt === 'reattach');
  return { ...again, effects: [told, ...again.effects] };
}

function fail(
  slot: LiveTask,
  world: World,
  error: Pick<LastError, 'reason' | 'message' | 'retryable'>,
): Attempted {
  const { task, attempt } = slot;
  const lastError: LastError = { task, attempt, ...error, at: iso(world.now) };
  return {
    slot: { ...slot, taskStatus: 'failed', lastError },
    effects: [
      event(
        'Warning',
        error.reason === 'TimeoutError' ? 'TaskTimeout' : 'TaskFailed',
        `task "${task}" failed (attempt ${attempt}): ${error.message}`,
      ),
    ],
    patches: [],
    settled: 'failed',
  };
}
