/** What `taskflow tree` does with its words and flags. */
import { configMaps, jobs, persistentVolumeClaims, pods, secrets } from '../../kube/builtin-resources.ts';
import { ApiError, Forbidden } from '../../kube/errors.ts';
import {
  apiVersionOf,
  defineResource,
  resourceName,
  resourcePath,
  type ResourceType,
} from '../../kube/resource-type.ts';
import { print } from '../terminal.ts';
import type { EngineObject } from './engine-object.ts';
import { findObject } from './find-objects.ts';
import { kindsOfCategory } from './kind-lookup.ts';
import { ownerTree, treeLines, treeReport } from './owner-tree.ts';
import { type OutputFormat, printData, sayForbidden } from './print-output.ts';
import { type Scope, type ScopeFlags, withScope } from './scope.ts';
import { parseObjectTarget, refuseRest } from './target.ts';

export interface TreeFlags extends ScopeFlags {
  readonly output: Exclude<OutputFormat, 'wide'>;
}

interface ChildKind {
  readonly type: ResourceType;
  /** Its content is nobody's business here: only names and owners are fetched. */
  readonly namesOnly: boolean;
}

const BUILT_IN_CHILDREN: readonly ChildKind[] = [
  { type: pods, namesOnly: false },
  { type: persistentVolumeClaims, namesOnly: false },
  { type: jobs, namesOnly: false },
  { type: defineResource('v1', 'Service', 'services', 'Namespaced'), namesOnly: true },
  { type: configMaps, namesOnly: true },
  { type: secrets, namesOnly: true },
];
const NAMES_ONLY = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

export async function treeAction(words: readonly string[], flags: TreeFlags): Promise<void> {
  const target = refuseRest(parseObjectTarget(words));
  await withScope(flags, async (scope) => {
    const { object } = await findObject(scope, target);
    const { objects, forbidden } = await possibleChildren(scope, object);
    const tree = ownerTree(object, objects);
    sayForbidden(forbidden);
    if (flags.output === 'table') print(treeLines(tree).join('\n'));
    else printData(treeReport(tree), flags.output);
  });
}

interface Children {
  readonly objects: readonly EngineObject[];
  readonly forbidden: readonly string[];
}

/** Owners and what they own are in one namespace; only a cluster-wide owner reaches into all. */
async function possibleChildren(scope: Scope, root: EngineObject): Promise<Children> {
  const { namespace } = root.metadata;
  const ours = kindsOfCategory(scope.resources).map(({ type }) => ({ type, namesOnly: false }));
  const kinds = [...ours, ...BUILT_IN_CHILDREN].filter(
    ({ type }) => namespace === undefined || type.namespaced,
  );
  const lists = await Promise.all(
    kinds.map(async (kind) => ({ kind, objects: await childrenOf(scope, kind, namespace) })),
  );
  return {
    objects: lists.flatMap(({ objects }) => objects ?? []),
    forbidden: lists.filter(({ objects }) => !objects).map(({ kind }) => resourceName(kind.type)),
  };
}

/** Undefined where the user may not look. */
async function childrenOf(
  scope: Scope,
  kind: ChildKind,
  namespace: string | undefined,
): Promise<readonly EngineObject[] | undefined> {
  try {
    return await (kind.namesOnly
      ? listNames(scope, kind.type, namespace)
      : listWhole(scope, kind.type, namespace));
  } catch (error) {
    if (error instanceof Forbidden) return undefined;
    // A kind may go between discovery and list.
    if (error instanceof ApiError && error.code === 404) return [];
    throw error;
  }
}

async function listWhole(
  { client }: Scope,
  type: ResourceType,
  namespace: string | undefined,
): Promise<EngineObject[]> {
  const objects: EngineObject[] = [];
  for await (const object of client.listAll(type, { namespace })) objects.push(object);
  return objects;
}

async function listNames(
  { client }: Scope,
  type: ResourceType,
  namespace: string | undefined,
): Promise<EngineObject[]> {
  const { items } = await client.json<{ items: readonly Pick<EngineObject, 'metadata'>[] | null }>(
    resourcePath(type, { namespace }),
    { accept: NAMES_ONLY },
  );
  // Every item says that it is a PartialObjectMetadata; a list without any is null.
  return (items ?? []).map(({ metadata }) => ({ apiVersion: apiVersionOf(type), kind: type.kind, metadata }));
}
