/** All flows of the process, with what plugins have inserted into them, and the check that they make sense. */
import type { KubeObject } from '../kube/resource-type.ts';
import type { FlowDef, FlowStep } from './flow-definition.ts';
import { type FlowKind, kindName } from './flow-kind.ts';
import { stepName } from './plan.ts';
import type { TaskDef } from './task-definition.ts';

/** A task that somebody else's flow gets. */
export interface FlowExtension {
  readonly flow: string;
  readonly insert: TaskDef<never>;
  /** Name of the task that it comes after, or before; one of the two. */
  readonly after?: string;
  readonly before?: string;
}

export class FlowCatalogue {
  readonly #extensions: readonly FlowExtension[];

  constructor(extensions: readonly FlowExtension[] = []) {
    this.#extensions = extensions;
  }

  /** The flow with what was inserted. Flows under way are not altered: their tasks are in the status. */
  flow<O extends KubeObject>(flow: FlowDef<O>): FlowDef<O> {
    const extensions = this.#extensions.filter((extension) => extension.flow === flow.name);
    if (extensions.length === 0) return flow;
    return {
      ...flow,
      steps: extensions.reduce((steps, extension) => inserted(steps, extension), flow.steps),
    };
  }

  task<O extends KubeObject>(kind: FlowKind<O>, name: string): TaskDef<O> | undefined {
    const own = kind.tasks.get(name);
    if (own) return own;
    return this.#extensions.find(({ flow, insert }) => kind.flows.has(flow) && insert.name === name)
      ?.insert as TaskDef<O> | undefined;
  }

  /** What is wrong with kinds and extensions together; the operator does not start with any. */
  faults(kinds: readonly FlowKind[]): string[] {
    return [...doubleFlows(kinds), ...kinds.flatMap(kindFaults), ...this.#extensionFaults(kinds)];
  }

  #extensionFaults(kinds: readonly FlowKind[]): string[] {
    return this.#extensions.flatMap(({ flow: name, insert, after, before }, index) => {
      const kind = kinds.find(({ flows }) => flows.has(name));
      const flow = kind?.flows.get(name);
      if (!kind || !flow) return [`extendFlow: there is no flow "${name}"`];
      if (after !== undefined && before !== undefined)
        return [`extendFlow: "${insert.name}" cannot come both after "${after}" and before "${before}"`];
      const double = this.#extensions.findIndex(
        (other) => other.flow === name && other.insert.name === insert.name,
      );
      if (double < index)
        return [`extendFlow: two tasks "${insert.name}" are inserted into the flow "${name}"`];
      const at = after ?? before;
      if (at === undefined || !this.flow(flow).steps.some((step) => stepName(step) === at))
        return [`extendFlow: the flow "${name}" has no step "${at ?? ''}"`];
      return kind.tasks.has(insert.name)
        ? [`extendFlow: ${kindName(kind)} has a task "${insert.name}" of its own`]
        : [];
    });
  }

  /** Not wrong, but probably not meant. */
  warnings(kinds: readonly FlowKind[]): string[] {
    return kinds.flatMap(unreachableStates);
  }
}

function inserted<O extends KubeObject>(
  steps: readonly FlowStep<O>[],
  { insert, after, before }: FlowExtension,
): readonly FlowStep<O>[] {
  const at = steps.findIndex((step) => stepName(step) === (after ?? before));
  if (at < 0) return steps;
  const place = after === undefined ? at : at + 1;
  return [...steps.slice(0, place), { kind: 'task', task: insert as TaskDef<O> }, ...steps.slice(place)];
}

function doubleFlows(kinds: readonly FlowKind[]): string[] {
  const seen = new Map<string, string>();
  return kinds.flatMap((kind) =>
    [...kind.flows.keys()].flatMap((flow) => {
      const other = seen.get(flow);
      seen.set(flow, kindName(kind));
      return other === undefined
        ? []
        : [`the flow "${flow}" is defined twice: by ${other} and by ${kindName(kind)}`];
    }),
  );
}

function kindFaults(kind: FlowKind): string[] {
  const of = kindName(kind);
  const faults: string[] = [];
  const demandState = (state: string, who: string): void => {
    if (!Object.hasOwn(kind.states, state))
      faults.push(
        `${of}: ${who} is "${state}", which is no state of it (${Object.keys(kind.states).join(', ')})`,
      );
  };
  demandState(kind.failedState, 'the failed state');
  if (kind.deletion) demandState(kind.deletion.state, 'the state of deletion');
  for (const flow of kind.flows.values()) {
    const { name, steps, graph, targets, failure, cancelStatus } = flow;
    if (targets.length === 0)
      faults.push(`${of}: the flow "${name}" must list the states that its target function gives`);
    for (const target of targets) demandState(target, `the target of flow "${name}"`);
    if (failure.status !== '') demandState(failure.status, `the failure status of flow "${name}"`);
    else if (failure.strategy === 'retry over')
      faults.push(`${of}: the flow "${name}" is retried over, but has no failure status`);
    if (cancelStatus !== undefined) demandState(cancelStatus, `the cancel status of flow "${name}"`);
    if (graph && steps.length > 0) faults.push(`${of}: the flow "${name}" is a graph, and has steps besides`);
    for (const double of doubles(steps.map(stepName)))
      faults.push(`${of}: the flow "${name}" has two steps "${double}"`);
  }
  return faults;
}

function doubles(names: readonly string[]): string[] {
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];
}

function unreachableStates(kind: FlowKind): string[] {
  const dynamic = Object.values(kind.states).some(({ next }) => next !== undefined);
  if (dynamic) return [];
  const targets = new Set(
    [...kind.flows.values()].flatMap(({ targets: states, failure, cancelStatus }) => [
      ...states,
      failure.status,
      cancelStatus ?? '',
    ]),
  );
  return Object.entries(kind.states)
    .filter(([state, { flow }]) => flow && !targets.has(state) && kind.deletion?.state !== state)
    .filter(([state]) => !isInitial(kind, state))
    .map(([state]) => `${kindName(kind)}: no flow leads to the state "${state}"`);
}

/** The first state may depend on the object; asked with none, a function may well throw. */
function isInitial({ initial }: FlowKind, state: string): boolean {
  try {
    return initial({ metadata: {} }) === state;
  } catch {
    return true;
  }
}
