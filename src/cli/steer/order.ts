/** One steering command on one object: the annotation is set or removed, and what the operator makes of it is told. */
import { userInfo } from 'node:os';
import { awaitObject } from '../../kube/await-object.ts';
import { systemClock } from '../../kube/clock.ts';
import { messageOf } from '../../kube/thrown.ts';
import { DEFAULT_NAMESPACE, OPERATOR } from '../install/names.ts';
import { type EngineObject, isPaused, nameText } from '../inspect/engine-object.ts';
import type { FoundObject } from '../inspect/find-objects.ts';
import type { Scope, ScopeFlags } from '../inspect/scope.ts';
import { paint, print } from '../terminal.ts';
import { UserError } from '../user-error.ts';
import { eventsBefore, newAnswer, type SeenEvents } from './command-events.ts';
import { type Plan, type Steering, type SteeringName, STEERINGS } from './steerings.ts';

export interface SteerFlags extends ScopeFlags {
  readonly wait: boolean;
  readonly timeout: number;
  readonly annotationDomain: string;
  readonly flowId?: string;
}

/** The event comes right after the annotation is off; without one we know as much after this. */
const EVENT_GRACE_MS = 2000;
/** Limit of the API. */
const LONGEST_FIELD_MANAGER = 128;

export class Order {
  readonly #scope: Scope;
  readonly #found: FoundObject;
  readonly #name: SteeringName;
  readonly #steering: Steering;
  readonly #flags: SteerFlags;
  readonly #annotation: string;

  constructor(scope: Scope, found: FoundObject, name: SteeringName, flags: SteerFlags) {
    this.#scope = scope;
    this.#found = found;
    this.#name = name;
    this.#steering = STEERINGS[name];
    this.#flags = flags;
    this.#annotation = `${flags.annotationDomain}/${this.#steering.annotation}`;
  }

  plan(rest: string): Plan | undefined {
    const { object } = this.#found;
    const { flowId } = this.#flags;
    const present = object.metadata.annotations?.[this.#annotation];
    const now = systemClock.now();
    return this.#steering.plan({ object, present, rest, now, ...(flowId !== undefined && { flowId }) });
  }

  async carryOut({ value }: Plan): Promise<void> {
    const { client } = this.#scope;
    const { type, ref, object } = this.#found;
    const seen = await eventsBefore(client, object);
    const annotations = { [this.#annotation]: value };
    await client.patch(
      type,
      ref,
      { kind: 'merge', body: { metadata: { annotations } } },
      { fieldManager: fieldManager() },
    );
    if (!this.#flags.wait)
      return print(`${nameText(object)}: ${this.#annotation} is ${value === null ? 'removed' : 'set'}`);
    const taken = await this.#untilTaken(value);
    await this.#tell(taken, seen);
  }

  async #untilTaken(value: string | null): Promise<EngineObject> {
    const { pausedAfter } = this.#steering;
    const isTaken = (object: EngineObject): boolean =>
      pausedAfter === undefined
        ? object.metadata.annotations?.[this.#annotation] !== value
        : isPaused(object) === pausedAfter;
    const { type, ref } = this.#found;
    const options = { timeoutMs: this.#flags.timeout, until: 'to be looked at by the operator' };
    try {
      return await awaitObject(this.#scope.client, type, ref, isTaken, options);
    } catch (error) {
      throw this.#nobodyThere(error);
    }
  }

  #nobodyThere(error: unknown): UserError {
    const { object } = this.#found;
    const name = nameText(object);
    const where = object.metadata.namespace === undefined ? '' : ` -n ${object.metadata.namespace}`;
    const cause = error instanceof Error && error.cause !== undefined ? ` (${messageOf(error.cause)})` : '';
    const takeBack =
      this.#name === 'resume'
        ? ''
        : `\nTo take it back:  kubectl annotate${where} ${name} ${this.#annotation}-`;
    return new UserError(
      `${name}: the operator has not reacted to ${this.#annotation} within ${this.#flags.timeout / 1000} s${cause}: ` +
        `it seems not to run, or not to watch this object${this.#stillRunning()}. What was asked for stays and is done when it comes.\n` +
        `Look whether it runs:  kubectl -n ${DEFAULT_NAMESPACE} get pods -l app.kubernetes.io/name=${OPERATOR}${takeBack}`,
    );
  }

  /** Some commands end the running task first, and a task may take its time. */
  #stillRunning(): string {
    const flow = this.#found.object.status?.operationContext;
    return flow?.taskStatus === 'running' ? `, or task "${flow.task}" does not end` : '';
  }

  async #tell(object: EngineObject, seen: SeenEvents | undefined): Promise<void> {
    const name = nameText(object);
    const done = paint('green', '✔');
    const { pausedAfter } = this.#steering;
    if (pausedAfter !== undefined) return print(`${done} ${name} ${pauseText(object, pausedAfter)}`);
    const answer = seen && (await newAnswer(this.#scope.client, object, seen, EVENT_GRACE_MS));
    if (answer && !answer.accepted) throw new UserError(`${name}: the operator refused: ${answer.message}`);
    print(`${done} ${name}: ${answer?.message ?? `the operator has taken the command "${this.#name}"`}`);
  }
}

function pauseText(object: EngineObject, paused: boolean): string {
  if (!paused) return 'is no longer paused';
  const flow = object.status?.operationContext;
  return flow?.taskStatus === 'running'
    ? `is paused: task "${flow.task}" still runs to its end, no other begins`
    : 'is paused: no task begins';
}

/** The operator names it in its events, so that everybody sees who steered. */
function fieldManager(): string {
  return `taskflow-cli-${userName()}`.slice(0, LONGEST_FIELD_MANAGER);
}

/** In a container the user may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
