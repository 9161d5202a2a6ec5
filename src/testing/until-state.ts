/** Waiting for an object to come to a state of its kind. */
import { awaitObject } from '../kube/await-object.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KindObject } from '../kube/schema/define-schema.ts';
import type { ObjectRef, ResourceType, Stored } from '../kube/resource-type.ts';
import type { DefinedKind } from '../resource-managers/define-kind.ts';
import type { EngineStatus } from '../taskflow/operation-context.ts';

type FlowObject = KindObject & { status?: EngineStatus & Record<string, unknown> };

const TIMEOUT_MS = 30_000;

/** The object as soon as it is in the state and in no flow. */
export async function untilState(
  client: KubeClient,
  { schema, flowKind }: DefinedKind,
  ref: ObjectRef,
  state: string,
  { timeoutMs = TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
): Promise<Stored<FlowObject>> {
  const { stateField } = flowKind;
  let last: FlowObject['status'];
  try {
    return await awaitObject(
      client,
      schema as ResourceType<FlowObject>,
      ref,
      ({ status }) => {
        last = status;
        return status?.[stateField] === state && status.operationContext === undefined;
      },
      { timeoutMs, until: `to be "${state}"` },
    );
  } catch (error) {
    throw new Error(`${(error as Error).message}; ${whereItIs(last, stateField)}`, { cause: error });
  }
}

/** What somebody who looks at a test that failed would ask next. */
function whereItIs(status: FlowObject['status'], stateField: string): string {
  const state = `its state is ${JSON.stringify(status?.[stateField] ?? '')}`;
  const flow = status?.operationContext;
  const failure = flow?.lastError?.message ?? status?.operationHistory?.[0]?.error;
  return [
    state,
    ...(flow ? [`in flow "${flow.name}", task "${flow.task}" (${flow.taskStatus})`] : []),
    ...(flow?.waitingFor === undefined ? [] : [`waiting for ${flow.waitingFor}`]),
    ...(failure === undefined ? [] : [`last error: ${failure}`]),
  ].join(', ');
}
