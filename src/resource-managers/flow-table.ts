/** The flows of systems as plain data, for `taskflow flows` and `/debug/flows`. */
import type { KubeObject } from '../kube/resource-type.ts';
import type { FlowCatalogue } from '../taskflow/flow-catalogue.ts';
import type { FlowDef } from '../taskflow/flow-definition.ts';
import type { FlowKind } from '../taskflow/flow-kind.ts';
import { stepName } from '../taskflow/plan.ts';
import type { System } from './kind.ts';

export interface FlowRow {
  readonly system: string;
  readonly kind: string;
  readonly flow: string;
  /** States that begin it. */
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly steps: readonly string[];
  readonly onFailure: string;
  readonly failureStatus: string;
  readonly maxRetry: number;
}

export function flowKindsOf(systems: readonly System[]): FlowKind[] {
  return systems.flatMap(({ kinds }) =>
    kinds.flatMap(({ flowKind }) => (flowKind ? [flowKind as unknown as FlowKind] : [])),
  );
}

export function flowTable(systems: readonly System[], catalogue?: FlowCatalogue): FlowRow[] {
  return systems.flatMap((system) =>
    flowKindsOf([system]).flatMap((kind) =>
      [...kind.flows.values()].map((flow) => rowOf(system.name, kind, catalogue?.flow(flow) ?? flow)),
    ),
  );
}

function rowOf(system: string, kind: FlowKind, flow: FlowDef): FlowRow {
  const { strategy, status, maxRetry } = flow.failure;
  const from = Object.entries(kind.states).filter(([, state]) => nameOf(state.flow) === flow.name);
  return {
    system,
    kind: kind.schema.kind,
    flow: flow.name,
    from: from.map(([state]) => state),
    to: flow.targets,
    steps: flow.graph ? ['(graph)'] : flow.steps.map(stepName),
    onFailure: strategy,
    failureStatus: status,
    maxRetry,
  };
}

function nameOf(
  flow: FlowDef | ((object: KubeObject) => FlowDef | undefined) | undefined,
): string | undefined {
  return typeof flow === 'object' ? flow.name : undefined;
}
