/**
 * The transition of a flow as one pure function: where it is and what is known
 * of its attempts in, where it goes and what is to be done out. It goes as far
 * as it can without waiting, so that the write which settles one task claims
 * the next.
 */
import { advanceAttempt, type Attempted, freshSlot, type TaskRules } from './attempt.ts';
import { countFailure, type Failures, mayRetryHere, retried } from './failure.ts';
import type { GraphDecision, NodeShape, NodeState } from './flow-definition.ts';
import { finishedTask } from './history.ts';
import type { FinishedTask, LastError, LiveTask, OperationContext } from './operation-context.ts';
import { type Effect, iso, type World } from './world.ts';

/** What the transition needs to know of the flow's definition. */
export interface FlowRules {
  /** By the name of a task, member or node. */
  readonly taskRules: (name: string) => TaskRules | undefined;
  readonly parallel: (name: string) => { readonly failFast: boolean } | undefined;
  readonly graph?: GraphRules | undefined;
  /** Name of the task that undoes a finished one. */
  readonly undoOf: (name: string) => string | undefined;
}

export interface GraphRules {
  readonly nodes: readonly NodeShape[];
  readonly next: (states: Readonly<Record<string, NodeState>>, canceled: boolean) => GraphDecision;
  /** Where the kind keeps the ends of nodes itself. */
  readonly store?: {
    readonly ended: Readonly<Record<string, NodeState>>;
    readonly record: (id: string, state: NodeState, error?: string) => object;
  };
}

export interface Advance {
  readonly context: OperationContext;
  readonly failures: Failures;
  readonly effects: readonly Effect[];
  readonly patches: readonly object[];
  readonly outcome: 'waits' | 'succeeded' | 'empty' | 'failed' | 'canceled';
  readonly until?: number;
}

export function advance(
  context: OperationContext,
  failures: Failures,
  flow: FlowRules,
  world: World,
): Advance {
  return new FlowRun(context, failures, flow, world).advance();
}

/** How far one call has come. Made for the call and gone with it: from outside, advance() is pure. */
class FlowRun {
  readonly #flow: FlowRules;
  readonly #world: World;
  readonly #effects: Effect[] = [];
  readonly #patches: object[] = [];
  #context: OperationContext;
  #failures: Failures;
  #until = Infinity;

  constructor(context: OperationContext, failures: Failures, flow: FlowRules, world: World) {
    this.#context = context;
    this.#failures = failures;
    this.#flow = flow;
    this.#world = world;
  }

  advance(): Advance {
    const outcome = this.#outcome();
    return {
      context: this.#context,
      failures: this.#failures,
      effects: this.#effects,
      patches: this.#patches,
      outcome,
      ...(this.#until < Infinity && { until: this.#until }),
    };
  }

  #outcome(): Advance['outcome'] {
    const { cancelRequested, compensating } = this.#context;
    if (compensating !== true) {
      if (cancelRequested) return this.#stop('canceled', cancelRequested.reason);
      if (this.#isOverdue()) return this.#stopOverdue();
      if (this.#flow.graph) return this.#graph(this.#flow.graph);
    }
    return this.#sequence();
  }

  // One task after the other.

  #sequence(): Advance['outcome'] {
    for (;;) {
      const { taskStatus, tasks, idx, task } = this.#context;
      if (taskStatus === 'failed') return 'failed';
      if (taskStatus === '' || taskStatus === 'successful') {
        if (taskStatus === 'successful') this.#noteSkippedByOthers();
        if (tasks.length === 0) return 'empty';
        if (idx >= tasks.length) return 'succeeded';
        this.#nextTask();
      } else {
        const step = this.#flow.parallel(task);
        const goesOn = step && this.#context.compensating !== true ? this.#parallel(step) : this.#task();
        if (!goesOn) return 'waits';
      }
    }
  }

  #nextTask(): void {
    const { idx, tasks, taskStatus, nextAttemptAt } = this.#context;
    const delayed = taskStatus === '' && idx === 0 && nextAttemptAt !== undefined;
    this.#context = {
      ...withoutTask(this.#context),
      task: tasks[idx] ?? '',
      idx: idx + 1,
      taskStatus: 'pending',
      taskId: '',
      attempt: 1,
      ...(delayed && { nextAttemptAt }),
    };
  }

  /** True if the flow can go on at once. */
  #task(): boolean {
    const attempted = this.#attempt(slotOf(this.#context), '');
    this.#context = withSlot(this.#context, attempted.slot);
    if (attempted.settled === 'successful') this.#finish(attempted.slot, 'successful');
    if (attempted.settled === 'canceled') this.#context = withSlot(this.#context, again(attempted.slot));
    return attempted.settled !== undefined;
  }

  // Several at once.

  #parallel({ failFast }: { readonly failFast: boolean }): boolean {
    const { task: name, running = [] } = this.#context;
    const others = running.filter(({ step }) => step !== name);
    let members = running.filter(({ step }) => step === name).flatMap((member) => this.#member(member));
    if (failFast && members.some(isFailed)) members = members.map((member) => this.#endMember(member));
    this.#context = withRunning(this.#context, [...members, ...others]);
    if (members.some(isLive)) {
      const { taskStartedAt = iso(this.#world.now) } = this.#context;
      this.#context = { ...this.#context, taskStatus: 'running', taskId: '', taskStartedAt };
      return false;
    }
    const failed = members.find(isFailed);
    this.#context = failed
      ? { ...this.#context, taskStatus: 'failed', ...(failed.lastError && { lastError: failed.lastError }) }
      : { ...this.#context, taskStatus: 'successful' };
    if (!failed) this.#finish({ ...slotOf(this.#context), attempt: 1 }, 'successful');
    return true;
  }

  /** The member as it goes on; none when it has succeeded. */
  #member(member: LiveTask): LiveTask[] {
    if (isFailed(member)) return [member];
    const { slot, settled } = this.#attempt(member, member.task);
    if (settled === undefined) return [slot];
    switch (settled) {
      case 'successful':
        this.#finish(slot, 'successful');
        return [];
      case 'canceled':
        return [{ ...slot, taskStatus: 'failed', lastError: canceledError(slot, this.#world) }];
      case 'failed':
        return [this.#retriedHere(slot)];
    }
  }

  /** One that failed, ready for its next attempt if it may have one. */
  #retriedHere(slot: LiveTask): LiveTask {
    if (!slot.lastError) return slot;
    this.#context = { ...this.#context, lastError: slot.lastError };
    const counted = countFailure(this.#context, this.#failures, this.#world);
    if (!mayRetryHere(this.#context, slot.lastError, counted, this.#world)) return slot;
    const { failureRule } = this.#context;
    this.#failures = counted;
    this.#context = {
      ...this.#context,
      failureRule: { ...failureRule, retryCount: (failureRule.retryCount ?? 0) + 1 },
    };
    const next = retried(slot, counted);
    this.#lookAgain(next.nextAt);
    return next;
  }

  /** Another one failed, and that is enough. */
  #endMember(member: LiveTask): LiveTask {
    if (!isLive(member)) return member;
    if (this.#isWorking(member)) {
      this.#effects.push({ kind: 'abort', taskId: member.taskId, reason: 'another task of the step failed' });
      return member;
    }
    this.#dropStart(member.taskId);
    return { ...member, taskStatus: 'failed', lastError: canceledError(member, this.#world) };
  }

  // A graph.

  #graph(graph: GraphRules): Advance['outcome'] {
    if (this.#context.taskStatus === 'failed') return 'failed';
    const states: Record<string, NodeState> = { ...endedNodes(this.#context, graph) };
    let live = (this.#context.running ?? []).map((slot) => ({ ...slot }));
    for (;;) {
      live = live.flatMap((slot) => this.#node(slot, graph, states));
      for (const { task } of live) states[task] = 'live';
      const decision = graph.next(states, false);
      for (const id of decision.skip) this.#endNode(freshSlot(id), 'skipped', graph, states);
      const starts = this.#world.paused ? [] : decision.start;
      live.push(...starts.map((id) => freshSlot(id)));
      if (decision.abort === true) live = live.map((slot) => this.#endMember(slot));
      if (starts.length === 0 && decision.skip.length === 0) {
        this.#mirror(live, states, graph);
        return live.length === 0 && decision.done ? this.#graphEnd(decision.done) : 'waits';
      }
    }
  }

  #node(slot: LiveTask, graph: GraphRules, states: Record<string, NodeState>): LiveTask[] {
    const attempted = isFailed(slot) ? { slot, settled: 'failed' as const } : this.#attempt(slot, slot.task);
    if (attempted.settled === undefined) return [attempted.slot];
    const settled = attempted.settled === 'failed' ? this.#retriedHere(attempted.slot) : attempted.slot;
    if (attempted.settled === 'failed' && !isFailed(settled)) return [settled];
    this.#endNode(settled, attempted.settled, graph, states);
    return [];
  }

  #endNode(
    slot: LiveTask,
    state: 'successful' | 'failed' | 'canceled' | 'skipped',
    graph: GraphRules,
    states: Record<string, NodeState>,
  ): void {
    states[slot.task] = state;
    if (graph.store) this.#patches.push(graph.store.record(slot.task, state, slot.lastError?.message));
    else this.#finish(slot, state);
  }

  #mirror(live: readonly LiveTask[], states: Readonly<Record<string, NodeState>>, graph: GraphRules): void {
    const first = live.find(({ taskStatus }) => taskStatus === 'running') ?? live[0];
    const ended = graph.nodes.filter(
      ({ id }) => (states[id] ?? 'waiting') !== 'waiting' && states[id] !== 'live',
    );
    this.#context = {
      ...withRunning(this.#context, live),
      idx: ended.length,
      task: first?.task ?? '',
      taskId: first?.taskId ?? '',
      taskStatus: 'running',
    };
  }

  #graphEnd(done: 'successful' | 'failed'): Advance['outcome'] {
    if (done === 'successful') return 'succeeded';
    const { failureRule, lastError } = this.#context;
    // Nodes were retried one by one already; only a start from the beginning is another try.
    const retryable = failureRule.failureStrategy === 'retry over' && lastError?.retryable !== false;
    const none = {
      task: '',
      attempt: 1,
      reason: 'NodeFailed',
      message: 'a node failed',
      at: iso(this.#world.now),
    };
    this.#context = {
      ...this.#context,
      taskStatus: 'failed',
      lastError: { ...none, ...lastError, retryable },
    };
    return 'failed';
  }

  // The end before the end.

  #isOverdue(): boolean {
    const { deadline } = this.#context;
    if (deadline === undefined) return false;
    this.#lookAgain(deadline);
    return Date.parse(deadline) <= this.#world.now;
  }

  #stopOverdue(): Advance['outcome'] {
    const outcome = this.#stop('failed', 'the deadline of the flow has passed');
    if (outcome === 'waits') return outcome;
    const { task, attempt = 1, deadline = '' } = this.#context;
    const lastError: LastError = {
      task,
      attempt,
      reason: 'DeadlineExceeded',
      message: `the flow was not done by ${deadline}`,
      at: iso(this.#world.now),
      retryable: false,
    };
    this.#context = { ...this.#context, taskStatus: 'failed', taskId: '', lastError };
    return outcome;
  }

  /** Ends every live attempt, and waits for the last of them. */
  #stop(outcome: 'canceled' | 'failed', reason: string): Advance['outcome'] {
    const { graph } = this.#flow;
    const states: Record<string, NodeState> = graph ? { ...endedNodes(this.#context, graph) } : {};
    const end = (slot: LiveTask, result: 'successful' | 'canceled'): void =>
      graph ? this.#endNode(slot, result, graph, states) : this.#finish(slot, result);
    const { task, taskId, running = [] } = this.#context;
    const isOwn = taskId !== '' && !running.some((slot) => slot.taskId === taskId);
    const own = isOwn && !this.#ended(slotOf(this.#context), reason, end);
    const alive = running.filter((slot) => !this.#ended(slot, reason, end));
    this.#context = { ...withRunning(this.#context, alive), task };
    if (own || alive.length > 0) return 'waits';
    if (graph)
      for (const id of graph.next(states, true).skip) this.#endNode(freshSlot(id), 'skipped', graph, states);
    this.#context = { ...this.#context, taskId: '' };
    return outcome;
  }

  #ended(
    slot: LiveTask,
    reason: string,
    end: (slot: LiveTask, as: 'successful' | 'canceled') => void,
  ): boolean {
    if (slot.taskId === '') return true;
    const view = this.#world.view(slot.taskId);
    if (view.state === 'working') {
      this.#effects.push({ kind: 'abort', taskId: slot.taskId, reason });
      return false;
    }
    const done = view.state === 'settled' && view.outcome.kind === 'done' ? view.outcome : undefined;
    if (done?.status) this.#patches.push(done.status);
    end(slot, done ? 'successful' : 'canceled');
    return true;
  }

  // What all of them share.

  #attempt(slot: LiveTask, branch: string): Attempted {
    const { owner } = this.#context;
    const attempted = advanceAttempt(slot, this.#flow.taskRules(slot.task), this.#world, { owner, branch });
    this.#effects.push(...attempted.effects.filter((effect) => !this.#isToldByFlow(effect, attempted)));
    this.#patches.push(...attempted.patches);
    if (attempted.until !== undefined) this.#until = Math.min(this.#until, attempted.until);
    this.#save(slot.task, branch, attempted);
    if (attempted.slot.lastError && attempted.settled === 'failed')
      this.#context = { ...this.#context, lastError: attempted.slot.lastError };
    return attempted;
  }

  /** A failure for good ends the flow, and the event of that names task and cause. */
  #isToldByFlow(effect: Effect, { settled, slot }: Attempted): boolean {
    const forGood = settled === 'failed' && slot.lastError?.retryable === false;
    return forGood && effect.kind === 'event' && this.#context.failureRule.failureStrategy !== 'Pause';
  }

  /** What the attempt wants kept in the context, and who runs it. */
  #save(task: string, branch: string, { progress, checkpoint, claimed }: Attempted): void {
    if (progress) this.#context = { ...this.#context, progress };
    if (claimed === true) this.#context = { ...this.#context, owner: this.#world.self };
    if (!checkpoint) return;
    const entries = Object.entries(checkpoint).map(([key, value]) => [
      checkpointKey(branch, task, key),
      value,
    ]);
    this.#context = {
      ...this.#context,
      checkpoint: { ...this.#context.checkpoint, ...(Object.fromEntries(entries) as Record<string, string>) },
    };
  }

  #finish(slot: LiveTask, result: FinishedTask['result']): void {
    const { finished = [], checkpoint } = this.#context;
    this.#context = {
      ...this.#context,
      finished: [...finished, finishedTask(slot, result, this.#world.now)],
      ...(checkpoint && { checkpoint: withoutTaskEntries(checkpoint, slot.task) }),
    };
  }

  /** A rescue from outside set the task to successful without running it. */
  #noteSkippedByOthers(): void {
    const { finished = [], task } = this.#context;
    if (finished.at(-1)?.task !== task) this.#finish(slotOf(this.#context), 'skipped');
  }

  #isWorking({ taskId }: LiveTask): boolean {
    return taskId !== '' && this.#world.view(taskId).state === 'working';
  }

  #dropStart(taskId: string): void {
    const at = this.#effects.findIndex((effect) => effect.kind === 'start' && effect.taskId === taskId);
    if (at >= 0) this.#effects.splice(at, 1);
  }

  #lookAgain(at: string | undefined): void {
    if (at !== undefined) this.#until = Math.min(this.#until, Date.parse(at));
  }
}

/** Members and nodes share one map, each under its name. */
export function checkpointKey(branch: string, task: string, key: string): string {
  return branch === '' ? key : `${task}/${key}`;
}

/** What a task, member or node has saved. */
export function checkpointOf(
  { checkpoint = {} }: Pick<OperationContext, 'checkpoint'>,
  task: string,
  branch: string,
): Record<string, string> {
  if (branch === '') return { ...checkpoint };
  const prefix = `${task}/`;
  const own = Object.entries(checkpoint).filter(([key]) => key.startsWith(prefix));
  return Object.fromEntries(own.map(([key, value]) => [key.slice(prefix.length), value]));
}

function withoutTaskEntries(checkpoint: Record<string, string>, task: string): Record<string, string> {
  return Object.fromEntries(Object.entries(checkpoint).filter(([key]) => !key.startsWith(`${task}/`)));
}

export function slotOf(context: OperationContext): LiveTask {
  const {
    task,
    taskId,
    taskStatus,
    attempt = 1,
    taskStartedAt,
    nextAttemptAt,
    waitingFor,
    interruptions,
  } = context;
  return {
    task,
    taskId,
    taskStatus,
    attempt,
    ...(taskStartedAt !== undefined && { startedAt: taskStartedAt }),
    ...(nextAttemptAt !== undefined && { nextAt: nextAttemptAt }),
    ...(waitingFor !== undefined && { waitingFor }),
    ...(interruptions !== undefined && { interruptions }),
    ...(context.lastError?.task === task && { lastError: context.lastError }),
  };
}

function withSlot(context: OperationContext, slot: LiveTask): OperationContext {
  const { taskStartedAt: _, nextAttemptAt: _at, waitingFor: _for, interruptions: _lost, ...rest } = context;
  return {
    ...rest,
    taskId: slot.taskId,
    taskStatus: slot.taskStatus,
    attempt: slot.attempt,
    ...(slot.startedAt !== undefined && { taskStartedAt: slot.startedAt }),
    ...(slot.nextAt !== undefined && { nextAttemptAt: slot.nextAt }),
    ...(slot.waitingFor !== undefined && { waitingFor: slot.waitingFor }),
    ...(slot.interruptions !== undefined && { interruptions: slot.interruptions }),
  };
}

/** The context without anything that belongs to the current task. */
function withoutTask(context: OperationContext): OperationContext {
  const {
    taskStartedAt: _started,
    nextAttemptAt: _next,
    waitingFor: _for,
    interruptions: _lost,
    progress: _progress,
    checkpoint: _saved,
    ...rest
  } = context;
  return rest;
}

function withRunning(context: OperationContext, running: readonly LiveTask[]): OperationContext {
  const { running: _, ...rest } = context;
  return running.length === 0 ? rest : { ...rest, running: [...running] };
}

function endedNodes(context: OperationContext, graph: GraphRules): Readonly<Record<string, NodeState>> {
  if (graph.store) return graph.store.ended;
  return Object.fromEntries((context.finished ?? []).map(({ task, result }) => [task, result]));
}

/** An attempt that was ended for no reason that the flow knows: once more. */
function again(slot: LiveTask): LiveTask {
  const { startedAt: _, ...rest } = slot;
  return { ...rest, taskStatus: 'pending', taskId: '' };
}

function canceledError({ task, attempt }: LiveTask, { now }: World): LastError {
  return {
    task,
    attempt,
    reason: 'Canceled',
    message: 'ended because another task of the step failed',
    at: iso(now),
    retryable: true,
  };
}

function isFailed({ taskStatus }: LiveTask): boolean {
  return taskStatus === 'failed';
}

function isLive({ taskStatus }: LiveTask): boolean {
  return taskStatus === '' || taskStatus === 'pending' || taskStatus === 'running';
}
