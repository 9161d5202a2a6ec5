/**
 * Whatever happens in whatever order, a flow keeps its promises: results,
 * crashes, conflicts, answers that are lost, pauses and retries. What is
 * modelled is the store, which keeps what a write has put there, and a process
 * that forgets everything when it crashes.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { advance, type FlowRules } from './advance.ts';
import { applyCommand } from './commands.ts';
import { endOfFailed, type Failures } from './failure.ts';
import { mergePatch } from './merge-patch.ts';
import type { OperationContext } from './operation-context.ts';
import type { AttemptView, Effect, Outcome, World } from './world.ts';

type Happening =
  | { readonly kind: 'pass'; readonly write: 'stored' | 'refused' | 'answer lost' }
  | { readonly kind: 'end'; readonly outcome: 'done' | 'wait' | 'fails' | 'fails for good' }
  | { readonly kind: 'crash' }
  | { readonly kind: 'time' }
  | { readonly kind: 'pause'; readonly paused: boolean }
  | { readonly kind: 'retry' };

const happenings = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('pass' as const),
        write: fc.constantFrom(
          'stored' as const,
          'stored' as const,
          'stored' as const,
          'refused' as const,
          'answer lost' as const,
        ),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('end' as const),
        outcome: fc.constantFrom(
          'done' as const,
          'done' as const,
          'wait' as const,
          'fails' as const,
          'fails for good' as const,
        ),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'crash' as const }) },
    { weight: 2, arbitrary: fc.constant({ kind: 'time' as const }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('pause' as const), paused: fc.boolean() }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'retry' as const }) },
  ),
  { maxLength: 120 },
);

const TASKS = ['first', 'both', 'last'];
const RULES: FlowRules = {
  taskRules: (name) => (name === 'unknown' ? undefined : { timeoutMs: 3_600_000, onInterrupt: 'rerun' }),
  parallel: (name) => (name === 'both' ? { failFast: false } : undefined),
  undoOf: () => undefined,
};

function fresh(): OperationContext {
  return {
    name: 'work',
    tasks: TASKS,
    task: '',
    idx: 0,
    taskStatus: '',
    taskId: '',
    targetStatus: 'done',
    failureRule: { failureStrategy: 'retry from current', failureStatus: 'failed', maxRetry: 99 },
    flowId: 'flow',
    running: ['one', 'two'].map((task) => ({ task, taskId: '', taskStatus: '', step: 'both', attempt: 1 })),
  };
}

/** One object, its store, and the process that works on it. */
class Model {
  stored: { context: OperationContext | undefined; failures: Failures } = {
    context: fresh(),
    failures: undefined,
  };
  readonly storedIds = new Set<string>();
  /** In memory: gone with a crash. */
  working = new Map<string, string>();
  results = new Map<string, Outcome>();
  inDoubt = new Set<string>();
  epoch = 1;
  now = Date.parse('2030-01-01T00:00:00Z');
  paused = false;
  ids = 0;
  /** Results that a stored status has recorded: task by task. */
  readonly recorded: string[] = [];
  readonly faults: string[] = [];
  ended = false;

  happen(happening: Happening): void {
    switch (happening.kind) {
      case 'pass':
        return this.pass(happening.write);
      case 'end':
        return this.endOne(happening.outcome);
      case 'crash':
        this.working = new Map();
        this.results = new Map();
        this.inDoubt = new Set();
        this.epoch++;
        return undefined;
      case 'time':
        this.now += 301_000;
        return undefined;
      case 'pause':
        this.paused = happening.paused;
        return undefined;
      case 'retry':
        return this.retry();
    }
  }

  get world(): World {
    return {
      now: this.now,
      self: { holder: 'model', epoch: this.epoch },
      paused: this.paused,
      nudged: this.ids % 2 === 0,
      limits: { maxRetry: 99, backoffThreshold: 16, maxDelayMs: 300_000 },
      random: () => 0.5,
      newId: () => `id-${this.ids++}`,
      view: (taskId): AttemptView => {
        const outcome = this.results.get(taskId);
        if (outcome) return { state: 'settled', outcome };
        if (this.working.has(taskId)) return { state: 'working' };
        return { state: this.inDoubt.has(taskId) ? 'unstarted' : 'unknown' };
      },
    };
  }

  pass(write: 'stored' | 'refused' | 'answer lost'): void {
    const { context, failures } = this.stored;
    if (!context || this.ended) return;
    const { next, effects, over } = this.compute(context, failures);
    const changed = mergePatch(context, next.context ?? {}) !== undefined || next.context === undefined;
    if (changed && write === 'refused') return;
    this.checkProgress(context, next.context);
    this.stored = next;
    this.ended = over;
    for (const id of idsOf(next.context)) this.storedIds.add(id);
    for (const effect of effects)
      if (effect.kind === 'start' && changed && write === 'answer lost') this.inDoubt.add(effect.taskId);
    if (changed && write === 'answer lost') return;
    this.carryOut(effects, next.context);
  }

  compute(context: OperationContext, failures: Failures) {
    const result = advance(context, failures, RULES, this.world);
    let next: OperationContext | undefined = result.context;
    let counted = result.failures;
    let over = false;
    if (result.outcome === 'succeeded') {
      next = undefined;
      over = true;
    } else if (result.outcome === 'failed') {
      const end = endOfFailed(result.context, counted, { current: 'new', failed: 'failed' }, this.world);
      if (end.kind === 'on') [next, counted] = [end.context, end.failures];
      if (end.kind === 'leave') [next, over] = [undefined, true];
    }
    return { next: { context: next, failures: counted }, effects: result.effects, over };
  }

  carryOut(effects: readonly Effect[], context: OperationContext | undefined): void {
    for (const effect of effects) {
      if (effect.kind !== 'start') continue;
      this.inDoubt.delete(effect.taskId);
      this.results.delete(effect.taskId);
      if (!this.storedIds.has(effect.taskId))
        this.faults.push(`${effect.task} started before its id was stored`);
      if ([...this.working.values()].includes(effect.task)) this.faults.push(`${effect.task} runs twice`);
      if (this.recorded.includes(effect.task))
        this.faults.push(`${effect.task} runs again after it was recorded`);
      this.working.set(effect.taskId, effect.task);
    }
    const live = new Set(idsOf(context));
    for (const id of this.results.keys()) if (!live.has(id)) this.results.delete(id);
  }

  checkProgress(before: OperationContext, after: OperationContext | undefined): void {
    const done = after?.finished ?? before.finished ?? [];
    if (after && after.idx < before.idx) this.faults.push('idx went back');
    for (const { task, result } of done.slice(before.finished?.length ?? 0)) {
      if (this.recorded.includes(task)) this.faults.push(`${task} was recorded twice`);
      if (result === 'successful') this.recorded.push(task);
    }
  }

  endOne(outcome: 'done' | 'wait' | 'fails' | 'fails for good'): void {
    const [id] = this.working.keys();
    if (id === undefined) return;
    this.working.delete(id);
    const error = (retryable: boolean): Outcome => ({
      kind: 'failed',
      error: { reason: 'Error', message: 'x', retryable },
    });
    const outcomes: Record<typeof outcome, Outcome> = {
      done: { kind: 'done' },
      wait: { kind: 'wait', at: this.now, ms: 1_000, reason: 'it' },
      fails: error(true),
      'fails for good': error(false),
    };
    this.results.set(id, outcomes[outcome]);
  }

  retry(): void {
    const { context, failures } = this.stored;
    if (!context || this.ended) return;
    const record = { status: 'new', context, failures, history: [] };
    const command = { name: 'retry' as const, value: '', annotation: '', by: '' };
    const result = applyCommand(command, record, {
      now: this.now,
      view: this.world.view,
      states: { new: {} },
      ownNodes: false,
    });
    if (result.kind === 'done')
      this.stored = { context: result.record.context, failures: result.record.failures };
  }
}

function idsOf(context: OperationContext | undefined): string[] {
  return context
    ? [context.taskId, ...(context.running ?? []).map(({ taskId }) => taskId)].filter((id) => id !== '')
    : [];
}

/** With a process that works and tasks that succeed, the flow ends. */
function letItFinish(model: Model): void {
  model.paused = false;
  for (let turn = 0; turn < 200 && !model.ended; turn++) {
    model.pass('stored');
    model.endOne('done');
    model.happen({ kind: 'time' });
  }
}

describe('any sequence of results, crashes, conflicts and commands', () => {
  it('keeps the order of write and act, and loses no result', () => {
    fc.assert(
      fc.property(happenings, (sequence) => {
        const model = new Model();
        for (const happening of sequence) model.happen(happening);
        letItFinish(model);
        expect(model.faults).toEqual([]);
        expect(model.ended).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});
