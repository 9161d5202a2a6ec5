/** An object and everything below it by owner references, as a tree of text. */
import type { Job, PersistentVolumeClaim, Pod } from '../../kube/builtin-resources.ts';
import type { KubeObject } from '../../kube/resource-type.ts';
import { table } from '../terminal.ts';
import { cut } from './cut.ts';
import { type EngineObject, nameText, stateText } from './engine-object.ts';
import { stepText, taskText, troubleText } from './flow-summary.ts';

export interface TreeNode {
  readonly object: EngineObject;
  readonly children: readonly TreeNode[];
}

const LONGEST_TROUBLE = 60;

/** What has several owners is below each of them; a circle of owners is cut where it closes. */
export function ownerTree(root: EngineObject, others: readonly EngineObject[]): TreeNode {
  const byOwner = Map.groupBy(
    others.flatMap((object) => (object.metadata.ownerReferences ?? []).map(({ uid }) => ({ uid, object }))),
    ({ uid }) => uid,
  );
  const grow = (object: EngineObject, above: ReadonlySet<string>): TreeNode => {
    const path = new Set([...above, object.metadata.uid]);
    const owned = (byOwner.get(object.metadata.uid) ?? []).map((entry) => entry.object);
    return {
      object,
      children: owned
        .filter(({ metadata }) => !path.has(metadata.uid))
        .toSorted(byKindAndName)
        .map((child) => grow(child, path)),
    };
  };
  return grow(root, new Set());
}

/** Kinds with flows first: they are what the tree is looked at for. */
function byKindAndName(a: EngineObject, b: EngineObject): number {
  const rank = ({ apiVersion = '' }: EngineObject): number => (BUILT_IN.has(apiVersion) ? 1 : 0);
  return rank(a) - rank(b) || nameText(a).localeCompare(nameText(b), 'en', { numeric: true });
}

const BUILT_IN: ReadonlySet<string> = new Set(['v1', 'batch/v1']);

export function treeLines(root: TreeNode): string[] {
  return table([...rows(root, '', '')]).split('\n');
}

function* rows({ object, children }: TreeNode, lead: string, below: string): Generator<string[]> {
  yield [`${lead}${nameText(object)}`, objectState(object), flowText(object)];
  for (const [at, child] of children.entries()) {
    const last = at === children.length - 1;
    yield* rows(child, `${below}${last ? '└─ ' : '├─ '}`, `${below}${last ? '   ' : '│  '}`);
  }
}

function flowText(object: EngineObject): string {
  const flow = object.status?.operationContext;
  const trouble = cut(troubleText(object).replaceAll(/\s+/g, ' '), LONGEST_TROUBLE);
  const where = flow ? `${flow.name} ${stepText(flow)}: ${taskText(flow)}` : '';
  return [where, trouble].filter((text) => text !== '').join('   ');
}

/** Built-in kinds say in their own ways how they are; those that have no state have none here. */
const STATE_OF_KIND: Readonly<Record<string, (object: KubeObject) => string>> = {
  Pod: podState,
  Job: jobState,
  PersistentVolumeClaim: (object) => (object as PersistentVolumeClaim).status?.phase ?? '',
  Service: () => '',
  ConfigMap: () => '',
  Secret: () => '',
};

export function objectState(object: EngineObject): string {
  const builtIn = BUILT_IN.has(object.apiVersion ?? '') ? STATE_OF_KIND[object.kind ?? ''] : undefined;
  return builtIn ? builtIn(object) : stateText(object);
}

function podState(object: KubeObject): string {
  const { metadata, status } = object as Pod;
  if (metadata?.deletionTimestamp !== undefined) return 'Terminating';
  const waiting = status?.containerStatuses?.find(({ state }) => state?.waiting?.reason !== undefined);
  return waiting?.state?.waiting?.reason ?? status?.phase ?? '';
}

function jobState(object: KubeObject): string {
  const { status } = object as Job;
  const ended = status?.conditions?.find(
    ({ type, status: holds }) => holds === 'True' && ['Complete', 'Failed', 'Suspended'].includes(type),
  );
  return ended?.type ?? ((status?.active ?? 0) > 0 ? 'Running' : 'Pending');
}

/** The tree for programs. */
export function treeReport({ object, children }: TreeNode): object {
  const flow = object.status?.operationContext;
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    namespace: object.metadata.namespace,
    name: object.metadata.name,
    state: objectState(object),
    ...(flow && { flow: flow.name, task: flow.task }),
    children: children.map(treeReport),
  };
}
