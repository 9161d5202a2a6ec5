/**
 * Drives the objects of one kind. A pass reads the object from the cache,
 * computes where its flow goes, stores that in one write, and only then acts:
 * starts the task that the write has claimed, forgets the results that it has
 * recorded. A pass that ends anywhere before its write has done nothing; one
 * that ends after it is taken up by the next, here or in another process.
 */
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import { ConnectionError, RequestAborted } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { addFinalizer, hasFinalizer, removeFinalizer } from '../kube/finalizers.ts';
import type { Informer } from '../kube/informer.ts';
import { apiVersionOf, type KubeObject, objectKey, type Stored } from '../kube/resource-type.ts';
import type { ReconcileContext, ReconcileResult } from '../runtime/controller.ts';
import { advance } from './advance.ts';
import type { Attempts } from './attempts.ts';
import type { CacheReader } from './cache-reader.ts';
import { applyCommand, type Command, commandsIn, isSet, liveIds } from './commands.ts';
import type { FlowCatalogue } from './flow-catalogue.ts';
import type { FlowKind } from './flow-kind.ts';
import { finishedFlow, withFlow } from './history.ts';
import type { EngineStatus, OperationContext } from './operation-context.ts';
import { fieldManagerOf } from './field-manager.ts';
import { mergePatch } from './merge-patch.ts';
import type { Observations } from './observations.ts';
import type { ResolvedFlow } from './plan.ts';
import type { ResourceManager, TaskFlow } from './resource-manager.ts';
import { FIELD_MANAGER, refOf, type StatusWriter } from './status-writer.ts';
import {
  type AttemptView,
  type Effect,
  event,
  iso,
  type Owner,
  type RetryLimits,
  type World,
} from './world.ts';

export interface CoordinatorOptions<O extends KubeObject> {
  readonly kind: FlowKind<O>;
  readonly catalogue: FlowCatalogue;
  readonly client: KubeClient;
  readonly informer: Informer<O>;
  readonly attempts: Attempts<O>;
  readonly writer: StatusWriter<O>;
  readonly observations: Observations<O>;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly owner: () => Owner;
  readonly limits: RetryLimits;
  readonly annotationDomain: string;
  readonly cacheFor: (object: Stored<O>) => CacheReader;
  readonly newId: () => string;
  readonly random: () => number;
  readonly observer?: CoordinatorObserver;
}

export interface CoordinatorObserver {
  /** A flow has ended. */
  ended?(flow: string, result: string, ms: number): void;
  interrupted?(): void;
}

/** More turns than a pass can need; what is left then is done in the next one. */
const MOST_TURNS = 10;

export class Coordinator<O extends KubeObject> {
  readonly #options: CoordinatorOptions<O>;
  readonly #domains: readonly string[];
  /** Claims that have not begun, though they are stored, or may be: their write got no answer. By key. */
  readonly #inDoubt = new Map<string, Set<string>>();

  readonly #nudged = new Set<string>();

  constructor(options: CoordinatorOptions<O>) {
    this.#options = options;
    this.#domains = [options.annotationDomain, ...options.kind.annotationDomains];
  }

  /** Something that the object's tasks may wait for has changed. */
  nudge(key: string): void {
    this.#nudged.add(key);
  }

  async reconcile(key: string, { signal, log }: ReconcileContext): Promise<ReconcileResult> {
    const { informer, owner, attempts, observations } = this.#options;
    const cached = informer.get(key);
    if (!cached) {
      attempts.purge(key);
      observations.forget(key);
      this.#nudged.delete(key);
      this.#inDoubt.delete(key);
      return undefined;
    }
    const current = await this.#prepared(cached, signal);
    const context = contextOf(current);
    if ((context?.owner?.epoch ?? 0) > owner().epoch) {
      log.warn('object is run by a newer leader', { owner: context?.owner });
      return undefined;
    }
    observations.refresh(current);
    return this.#pass(current, signal);
  }

  /** With the finalizer that guards it, and as it is on the server if somebody gave it a command. */
  async #prepared(cached: Stored<O>, signal: AbortSignal): Promise<Stored<O>> {
    const { kind, client, informer } = this.#options;
    const { deletionTimestamp, annotations = {} } = cached.metadata;
    const finalizer = kind.deletion?.finalizer;
    if (finalizer !== undefined && deletionTimestamp === undefined && !hasFinalizer(cached, finalizer))
      return informer.write(refOf(cached), () =>
        addFinalizer(client, informer.type, cached, finalizer, { signal }),
      );
    if (commandsIn(annotations, this.#domains, () => '').length === 0) return cached;
    const fresh = await client.get(informer.type, refOf(cached), { signal });
    return fresh.metadata.uid === cached.metadata.uid ? fresh : cached;
  }

  async #pass(current: Stored<O>, signal: AbortSignal): Promise<ReconcileResult> {
    const key = objectKey(current.metadata);
    const world = this.#world(current, key);
    const manager = this.#manager(current, world, signal);
    const pass = new Pass(manager, world, this.#options.kind);
    const commands = this.#commands(current);
    await pass.run(commands, isSet(current.metadata.annotations, this.#domains, 'ignore-deletion'));
    const effects = manager.effects;
    const starts = effects.flatMap((effect) => (effect.kind === 'start' ? [effect.taskId] : []));
    const written = await this.#write(key, current, manager.object, starts, signal);
    if (written.kind === 'gone') {
      this.#options.attempts.purge(key);
      return undefined;
    }
    if (written.kind === 'void') return { requeueAfterMs: 1 };
    this.#carryOut(written.object, manager, pass.rules, effects);
    if (pass.carriedOut.length > 0) await this.#removeAnnotations(written.object, pass.carriedOut, signal);
    await manager.checkAndUpdateFinalizers();
    const wakeAt = Math.min(pass.until, manager.wakeAt);
    if (pass.again || pass.carriedOut.length > 0) return { requeueAfterMs: 1 };
    return wakeAt === Infinity ? undefined : { requeueAfterMs: Math.max(1, wakeAt - world.now) };
  }

  #world(object: Stored<O>, key: string): World {
    const { clock, owner, limits, newId, random } = this.#options;
    const doubtful = this.#inDoubt.get(key);
    return {
      now: clock.now(),
      self: owner(),
      paused: isSet(object.metadata.annotations, this.#domains, 'pause-reconciling'),
      nudged: this.#nudged.delete(key),
      limits,
      newId,
      random,
      view: (taskId): AttemptView => {
        const view = this.#options.attempts.view(taskId);
        return view.state === 'unknown' && doubtful?.has(taskId) === true ? { state: 'unstarted' } : view;
      },
    };
  }

  #manager(current: Stored<O>, world: World, signal: AbortSignal): ResourceManager<O> {
    const { kind, catalogue, cacheFor, client, informer } = this.#options;
    const status = structuredClone((current as { status?: object }).status ?? {});
    const object: Stored<O> = { ...current, status };
    return kind.createManager({
      kind,
      object,
      catalogue,
      cache: cacheFor(current),
      world,
      removeFinalizer: async (finalizer) => {
        if (hasFinalizer(current, finalizer))
          await removeFinalizer(client, informer.type, current, finalizer, { signal });
      },
    });
  }

  #commands(object: Stored<O>): Command[] {
    const { annotations = {} } = object.metadata;
    return commandsIn(annotations, this.#domains, (annotation) => fieldManagerOf(object, annotation));
  }

  /** Remembers the claims in it until it is known whether they are stored. */
  async #write(
    key: string,
    before: Stored<O>,
    after: Stored<O>,
    starts: readonly string[],
    signal: AbortSignal,
  ): ReturnType<StatusWriter<O>['write']> {
    this.#doubt(key, starts);
    try {
      const written = await this.#options.writer.write(before, after, signal);
      if (written.kind === 'stored') this.#inDoubt.delete(key);
      return written;
    } catch (error) {
      // An answer of the server is an answer: nothing was stored.
      if (!(error instanceof ConnectionError || error instanceof RequestAborted))
        for (const taskId of starts) this.#inDoubt.get(key)?.delete(taskId);
      throw error;
    }
  }

  #doubt(key: string, taskIds: readonly string[]): void {
    if (taskIds.length > 0) this.#inDoubt.set(key, new Set([...(this.#inDoubt.get(key) ?? []), ...taskIds]));
  }

  #carryOut(
    stored: Stored<O>,
    manager: ResourceManager<O>,
    rules: ResolvedFlow<O> | undefined,
    effects: readonly Effect[],
  ): void {
    const { attempts, events, kind, observer } = this.#options;
    const context = contextOf(manager.object);
    const ids = context ? liveIds(context) : [];
    attempts.stored(ids);
    attempts.retain(objectKey(stored.metadata), new Set(ids));
    const about = { ...stored, apiVersion: apiVersionOf(kind.schema), kind: kind.schema.kind };
    for (const effect of effects) {
      switch (effect.kind) {
        case 'event':
          events.event(about, effect.type, effect.reason, effect.message);
          if (effect.reason === 'TaskInterrupted') observer?.interrupted?.();
          break;
        case 'abort':
          attempts.abort(effect.taskId, effect.reason);
          break;
        case 'start': {
          const resolved = rules?.resolve(effect.task);
          if (resolved && context && !attempts.start({ effect, object: stored, context, resolved }))
            this.#doubt(objectKey(stored.metadata), [effect.taskId]);
          break;
        }
      }
    }
    this.#observeEnd(manager);
  }

  #observeEnd(manager: ResourceManager<O>): void {
    const [newest] = engineStatus(manager.object).operationHistory ?? [];
    const { observer, clock } = this.#options;
    if (!newest || !observer?.ended) return;
    const justNow = clock.now() - Date.parse(newest.finishedAt) < 1_000;
    const isNew = manager.effects.some(
      (effect) => effect.kind === 'event' && effect.reason.startsWith('Flow'),
    );
    if (justNow && isNew && !contextOf(manager.object))
      observer.ended(
        newest.name,
        newest.result,
        Date.parse(newest.finishedAt) - Date.parse(newest.startedAt),
      );
  }

  /** The status says that they are carried out; should this fail, the next pass only removes them. */
  async #removeAnnotations(
    stored: Stored<O>,
    commands: readonly Command[],
    signal: AbortSignal,
  ): Promise<void> {
    const { client, informer } = this.#options;
    const annotations = Object.fromEntries(commands.map(({ annotation }) => [annotation, null]));
    const ref = refOf(stored);
    await informer.write(ref, () =>
      client.patch(
        informer.type,
        ref,
        {
          kind: 'merge',
          body: { metadata: { resourceVersion: stored.metadata.resourceVersion, annotations } },
        },
        { fieldManager: FIELD_MANAGER, signal },
      ),
    );
  }
}

/** One pass over the draft of one object, up to the point where something has to be waited for. */
class Pass<O extends KubeObject> {
  readonly #manager: ResourceManager<O>;
  readonly #world: World;
  readonly #kind: FlowKind<O>;
  /** Commands whose annotations are to go. */
  readonly carriedOut: Command[] = [];
  rules: ResolvedFlow<O> | undefined;
  until = Infinity;
  /** There is more to do at once. */
  again = false;

  constructor(manager: ResourceManager<O>, world: World, kind: FlowKind<O>) {
    this.#manager = manager;
    this.#world = world;
    this.#kind = kind;
  }

  async run(commands: readonly Command[], ignoresDeletion: boolean): Promise<void> {
    const manager = this.#manager;
    if (manager.isNewResource()) manager.initStatus();
    const blocked = this.#obey(commands);
    const deletes = manager.isDeleting() && !ignoresDeletion && !this.#world.paused;
    const states: string[] = [];
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      if (deletes) this.#delete();
      const flow = blocked ? 'waits' : this.#moveFlow();
      const state = manager.getStatus();
      await manager.updateStatus();
      if (flow === 'waits' || (flow === 'none' && manager.getStatus() === state)) return;
      if (flow === 'none') states.push(state);
    }
    if (states.length === MOST_TURNS) throw new Error(`states lead in a circle: ${states.join(' → ')}`);
    this.again = true;
  }

  #moveFlow(): 'none' | 'waits' | 'moved' {
    const flow = this.#manager.getTaskFlow();
    if (!flow) return 'none';
    this.#manager.setOperationContext(flow.context);
    const waits = this.#advance(flow);
    const after = contextOf(this.#manager.object);
    if (after && mergePatch(flow.context, after))
      this.#manager.setOperationContext({ ...after, updatedAt: iso(this.#world.now) });
    return waits ? 'waits' : 'moved';
  }

  /** True when something has to be waited for. */
  #advance({ context, rules }: TaskFlow<O>): boolean {
    const manager = this.#manager;
    const status = engineStatus(manager.object);
    const result = advance(context, status.consecutiveFailures, rules, this.#world);
    this.rules = rules;
    manager.effects.push(...result.effects);
    for (const patch of result.patches) manager.patchStatus(patch);
    if (result.failures) status.consecutiveFailures = result.failures;
    manager.setOperationContext(result.context);
    this.until = Math.min(this.until, result.until ?? Infinity);
    switch (result.outcome) {
      case 'waits':
        return true;
      case 'empty':
        manager.clearTaskInfo();
        return false;
      case 'succeeded':
        manager.finishTask();
        return false;
      case 'canceled':
        manager.handleCancel();
        return false;
      case 'failed':
        manager.handleFailure();
        return contextOf(manager.object)?.taskStatus === 'failed';
    }
  }

  /** A flow that gives way is cancelled; when there is none, the one that cleans up begins. */
  #delete(): void {
    const { deletion } = this.#kind;
    const manager = this.#manager;
    if (!deletion) return;
    const context = contextOf(manager.object);
    if (!context) {
      const state = this.#kind.states[manager.getStatus()];
      if (manager.getStatus() !== deletion.state && state?.deleted !== true) manager.setState(deletion.state);
      return;
    }
    const flow = this.#kind.flows.get(context.name);
    const gives = flow?.deletePreempts !== false && context.startStatus !== deletion.state;
    if (!gives || context.cancelRequested || context.compensating === true) return;
    manager.setOperationContext({
      ...context,
      cancelRequested: { by: 'deletion', at: iso(this.#world.now), reason: 'the object is being deleted' },
    });
  }

  /** True if a command waits for the end of an attempt, so that nothing else may happen. */
  #obey(commands: readonly Command[]): boolean {
    const status = engineStatus(this.#manager.object);
    const accepted = status.acceptedCommands ?? {};
    for (const command of commands) {
      if (accepted[command.annotation] === command.value) {
        this.carriedOut.push(command);
        continue;
      }
      if (this.#carryOut(command, status)) return true;
    }
    if (this.carriedOut.length > 0)
      status.acceptedCommands = Object.fromEntries(
        this.carriedOut.map(({ annotation, value }) => [annotation, value]),
      );
    else delete status.acceptedCommands;
    return false;
  }

  #carryOut(command: Command, status: EngineStatus): boolean {
    const manager = this.#manager;
    const {
      operationContext: context,
      consecutiveFailures: failures,
      operationHistory: history = [],
    } = status;
    const ownNodes = context !== undefined && this.#kind.flows.get(context.name)?.graph?.store !== undefined;
    const result = applyCommand(
      command,
      { status: manager.getStatus(), context, failures, history },
      { now: this.#world.now, view: this.#world.view, states: this.#kind.states, ownNodes },
    );
    if (result.kind === 'waits') {
      manager.effects.push(...result.effects);
      return true;
    }
    this.carriedOut.push(command);
    const accepted = result.kind === 'done';
    manager.effects.push(
      event(
        accepted ? 'Normal' : 'Warning',
        accepted ? 'CommandAccepted' : 'CommandRefused',
        `${command.name}="${command.value}" by ${command.by}: ${result.message}`,
      ),
    );
    if (!accepted) return false;
    manager.effects.push(...(result.effects ?? []));
    if (context && result.ended) this.#archive(status, context, result.ended);
    manager.setOperationContext(result.record.context ?? null);
    manager.setState(result.record.status);
    if (result.record.failures) status.consecutiveFailures = result.record.failures;
    else delete status.consecutiveFailures;
    return false;
  }

  #archive(status: EngineStatus, context: OperationContext, result: 'Canceled'): void {
    status.operationHistory = withFlow(
      status.operationHistory,
      finishedFlow(context, result, this.#world.now),
    );
  }
}

function engineStatus(object: KubeObject): EngineStatus {
  return (object as { status?: EngineStatus }).status ?? {};
}

function contextOf(object: KubeObject): OperationContext | undefined {
  return engineStatus(object).operationContext;
}
