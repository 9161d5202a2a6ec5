/**
 * A manager made from a kind's table of states. A kind that needs more extends
 * it and overrides only what differs.
 */
import { isConditionTrue, setCondition } from '../kube/conditions.ts';
import { maskSecrets } from '../kube/mask-secrets.ts';
import type { KubeObject, ObjectMeta, Stored } from '../kube/resource-type.ts';
import { type Failures, endOfFailed, undoContext } from '../taskflow/failure.ts';
import { flowConditions } from '../taskflow/flow-conditions.ts';
import type { StateDef } from '../taskflow/flow-kind.ts';
import { finishedFlow, withFlow } from '../taskflow/history.ts';
import { applyMergePatch } from '../taskflow/merge-patch.ts';
import type { EngineStatus, FlowResult, OperationContext } from '../taskflow/operation-context.ts';
import { planFlow, type ResolvedFlow, resolveFlow } from '../taskflow/plan.ts';
import type { ManagerInit, ResourceManager, TaskFlow } from '../taskflow/resource-manager.ts';
import type { TaskFn } from '../taskflow/task-definition.ts';
import { type Effect, event } from '../taskflow/world.ts';

type Status = EngineStatus & Record<string, unknown>;

/** Of these the engine alone is the author. */
const ENGINE_FIELDS: ReadonlySet<string> = new Set([
  'operationContext',
  'operationHistory',
  'consecutiveFailures',
  'acceptedCommands',
  'observedGeneration',
]);

export class BaseResourceManager<O extends KubeObject> implements ResourceManager<O> {
  readonly object: Stored<O>;
  readonly effects: Effect[] = [];
  protected readonly init: ManagerInit<O>;
  #wakeAt = Infinity;
  #rules: { context: OperationContext; rules: ResolvedFlow<O> } | undefined;

  constructor(init: ManagerInit<O>) {
    this.init = init;
    this.object = init.object;
  }

  get wakeAt(): number {
    return this.#wakeAt;
  }

  isNewResource(): boolean {
    return this.getStatus() === '';
  }

  isDeleting(): boolean {
    return this.object.metadata.deletionTimestamp !== undefined;
  }

  getMeta(): ObjectMeta {
    return this.object.metadata;
  }

  getStatus(): string {
    const state = this.status[this.init.kind.stateField];
    return typeof state === 'string' ? state : '';
  }

  initStatus(): void {
    this.setState(this.init.kind.initial(this.object));
  }

  getTaskFlow(): TaskFlow<O> | null {
    const context = this.status.operationContext ?? this.#plan();
    return context ? { context, rules: this.#resolve(context) } : null;
  }

  setOperationContext(context: OperationContext | null): void {
    if (context) this.status.operationContext = context;
    else delete this.status.operationContext;
  }

  getTaskFunc(name: string): TaskFn<O> {
    const task = this.init.catalogue.task(this.init.kind, name);
    if (!task) throw new Error(`${this.init.kind.schema.kind} has no task "${name}"`);
    return task.run;
  }

  clearTaskInfo(): void {
    this.finishTask();
  }

  finishTask(): void {
    const context = this.#context();
    const target = this.#targetOf(context);
    if (context.compensating === true) return this.#leave(context, context.undoneFor ?? 'Failed', target);
    if (this.failures?.flow === context.name) this.failures = undefined;
    this.#leave(context, 'Succeeded', target);
  }

  handleFailure(): void {
    const context = this.#context();
    const { deletion } = this.init.kind;
    const deletes = context.startStatus === deletion?.state;
    if (this.isDeleting() && deletion && !deletes && context.failureRule.failureStrategy !== 'Pause')
      return this.#leave(context, 'Failed', deletion.state);
    const states = { current: this.getStatus(), failed: this.init.kind.failedState };
    const members = this.#resolve(context).members();
    const end = endOfFailed(context, this.failures, states, this.init.world, members);
    switch (end.kind) {
      case 'stay':
        return;
      case 'on':
        this.failures = end.failures;
        return this.setOperationContext(end.context);
      case 'leave':
        this.failures = this.#resting(end);
        return end.result === 'Archived' ? this.archiveResource() : this.#undoOrLeave(context, end);
    }
  }

  handleCancel(): void {
    const context = this.#context();
    const { kind, catalogue } = this.init;
    if (context.cancelRequested?.by === 'deletion' && kind.deletion)
      return this.#leave(context, 'Canceled', kind.deletion.state);
    const flow = kind.flows.get(context.name);
    const status = (flow && catalogue.flow(flow).cancelStatus) ?? context.startStatus ?? this.getStatus();
    this.#undoOrLeave(context, { result: 'Canceled', status });
  }

  archiveResource(): void {
    this.#undoOrLeave(this.#context(), { result: 'Archived', status: this.init.kind.failedState });
  }

  async updateStatus(): Promise<void> {
    const { kind, cache } = this.init;
    if (kind.observe) this.patchStatus(kind.observe(this.object, cache));
    if (!this.status.operationContext && !this.isDeleting()) this.#compare();
    this.#updateConditions();
  }

  async checkAndUpdateFinalizers(): Promise<void> {
    const { kind, removeFinalizer } = this.init;
    if (!kind.deletion || this.status.operationContext || this.stateDef.deleted !== true) return;
    await removeFinalizer(kind.deletion.finalizer);
  }

  printErrEvent(error: Error): void {
    this.effects.push(event('Warning', 'TaskFailed', error.message));
  }

  /** Merges fields into the draft; the engine's own are not for others to set. */
  patchStatus(patch: object): void {
    const own = Object.entries(patch).filter(
      ([field]) => !ENGINE_FIELDS.has(field) && field !== this.init.kind.stateField,
    );
    for (const [field, value] of Object.entries(
      applyMergePatch(pick(this.status, own), Object.fromEntries(own)),
    ))
      this.status[field] = value;
    for (const [field, value] of own) if (value === null) delete this.status[field];
  }

  protected get status(): Status {
    return (this.object as { status?: Status }).status ?? {};
  }

  protected get stateDef(): StateDef<O> {
    return this.init.kind.states[this.getStatus()] ?? {};
  }

  setState(state: string): void {
    (this.status as Record<string, unknown>)[this.init.kind.stateField] = state;
  }

  protected get failures(): Failures {
    return this.status.consecutiveFailures;
  }

  protected set failures(failures: Failures) {
    if (failures) this.status.consecutiveFailures = failures;
    else delete this.status.consecutiveFailures;
  }

  #context(): OperationContext {
    const { operationContext } = this.status;
    if (!operationContext) throw new Error('there is no flow');
    return operationContext;
  }

  #plan(): OperationContext | undefined {
    const { catalogue, world } = this.init;
    const { flow: choice } = this.stateDef;
    const chosen = typeof choice === 'function' ? choice(this.object) : choice;
    if (!chosen || this.#mustWait(chosen.name)) return undefined;
    const generation = this.object.metadata.generation ?? 0;
    const context = planFlow({
      flow: catalogue.flow(chosen),
      object: this.object,
      status: this.getStatus(),
      generation,
      now: world.now,
      flowId: world.newId().slice(0, 12),
    });
    this.status.observedGeneration = generation;
    // A retry tells of itself by its failure; the server takes only so many events of one object.
    if (this.failures?.flow !== chosen.name)
      this.effects.push(
        event('Normal', 'FlowStarted', `flow "${chosen.name}" started in state "${this.getStatus()}"`),
      );
    return context;
  }

  /** A flow that keeps failing is not begun again at once, unless somebody has changed what is wanted. */
  #mustWait(flow: string): boolean {
    const { failures } = this;
    if (this.init.world.paused) return true;
    if (failures?.flow !== flow || failures.nextAttemptAt === undefined) return false;
    if ((this.object.metadata.generation ?? 0) > (this.status.observedGeneration ?? 0)) return false;
    const at = Date.parse(failures.nextAttemptAt);
    if (at <= this.init.world.now) return false;
    this.#wakeAt = Math.min(this.#wakeAt, at);
    return true;
  }

  #resolve(context: OperationContext): ResolvedFlow<O> {
    const known = this.#rules;
    if (known?.context === context) return known.rules;
    const { kind, catalogue } = this.init;
    const flow = kind.flows.get(context.name);
    const rules = resolveFlow<O>(context, flow && catalogue.flow(flow), this.object, (name) =>
      catalogue.task(kind, name),
    );
    this.#rules = { context, rules };
    return rules;
  }

  #targetOf(context: OperationContext): string {
    if (context.targetStatus !== '') return context.targetStatus;
    const target = this.init.kind.flows.get(context.name)?.target;
    return typeof target === 'function' ? target(this.object) : (target ?? this.getStatus());
  }

  /** In a failed state nothing is tried again by itself, so there is no moment for it. */
  #resting({ failures, status }: { readonly failures: Failures; readonly status: string }): Failures {
    if (!failures || this.init.kind.states[status]?.failed !== true) return failures;
    const { nextAttemptAt: _, ...rest } = failures;
    return rest;
  }

  #undoOrLeave(
    context: OperationContext,
    end: { readonly result: FlowResult; readonly status: string },
  ): void {
    const permanent = end.result !== 'Failed' || context.lastError?.retryable === false;
    const undo = permanent
      ? undoContext(context, this.#resolve(context).undoOf, end, this.init.world.now)
      : undefined;
    if (!undo) return this.#leave(context, end.result, end.status);
    this.effects.push(event('Normal', 'FlowUndoing', `flow "${context.name}" is being undone`));
    this.setOperationContext(undo);
  }

  #leave(context: OperationContext, result: FlowResult, status: string): void {
    const { world } = this.init;
    this.setOperationContext(null);
    this.setState(status);
    this.status.operationHistory = withFlow(
      this.status.operationHistory,
      finishedFlow(context, result, world.now),
    );
    const triedAgain = result === 'Failed' && context.lastError?.retryable === true;
    if (!triedAgain || context.compensating === true) this.effects.push(endEvent(context, result, status));
  }

  /** Where there is no flow: what is wanted against what is there. */
  #compare(): void {
    const { kind, cache } = this.init;
    const generation = this.object.metadata.generation ?? 0;
    const changed = generation > (this.status.observedGeneration ?? 0);
    const [last] = this.status.operationHistory ?? [];
    if (
      this.stateDef.failed === true &&
      kind.retryOnSpecChange &&
      changed &&
      last?.fromStatus !== undefined
    ) {
      this.failures = undefined;
      this.setState(last.fromStatus);
    } else {
      const next = this.stateDef.next?.(this.object, cache);
      if (next !== undefined && next !== this.getStatus()) return this.setState(next);
    }
    if (!this.stateDef.flow) this.status.observedGeneration = generation;
  }

  #updateConditions(): void {
    const { world } = this.init;
    const generation = this.object.metadata.generation;
    const updates = flowConditions(this.getStatus(), this.stateDef, this.status, world.paused);
    let conditions = this.status.conditions as Parameters<typeof setCondition>[0];
    const wasPaused = isConditionTrue(conditions, 'Paused');
    if (world.paused && !wasPaused)
      this.effects.push(event('Normal', 'Paused', 'no task is started any more'));
    if (!world.paused && wasPaused) this.effects.push(event('Normal', 'Resumed', 'tasks are started again'));
    for (const update of updates)
      conditions = setCondition(
        conditions,
        { ...update, message: maskSecrets(update.message ?? ''), observedGeneration: generation },
        { now: () => world.now },
      );
    this.status.conditions = [...(conditions ?? [])] as NonNullable<Status['conditions']>;
  }
}

function pick(status: Status, fields: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  return Object.fromEntries(fields.map(([field]) => [field, status[field]]));
}

function endEvent({ name, lastError }: OperationContext, result: FlowResult, status: string): Effect {
  const why = lastError ? `: task "${lastError.task}": ${lastError.message}` : '';
  switch (result) {
    case 'Succeeded':
    case 'Skipped':
      return event('Normal', 'FlowSucceeded', `flow "${name}" succeeded; state is "${status}"`);
    case 'Canceled':
      return event('Normal', 'FlowCanceled', `flow "${name}" was cancelled; state is "${status}"`);
    case 'Archived':
      return event(
        'Warning',
        'Archive',
        `flow "${name}" failed too often and is given up; state is "${status}"${why}`,
      );
    case 'Failed':
      return event('Warning', 'FlowFailed', `flow "${name}" failed; state is "${status}"${why}`);
  }
}
