/** The objects that a user means. */
import type { ApiResource } from '../../kube/discovery.ts';
import { ApiError, Forbidden, NotFound } from '../../kube/errors.ts';
import { type ObjectRef, resourceName, type ResourceType } from '../../kube/resource-type.ts';
import { editDistance } from '../../runtime/config/nearest.ts';
import { UserError } from '../user-error.ts';
import type { EngineObject } from './engine-object.ts';
import { findKind, findKinds, kindsOfCategory } from './kind-lookup.ts';
import { namespaceOf, type Scope } from './scope.ts';
import { type ObjectTarget, type Target, usageError } from './target.ts';

export interface FoundObject {
  readonly resource: ApiResource;
  readonly type: ResourceType<EngineObject>;
  readonly ref: ObjectRef;
  readonly object: EngineObject;
}

export interface FoundObjects {
  readonly objects: readonly EngineObject[];
  /** Kinds that were listed. */
  readonly types: readonly ResourceType<EngineObject>[];
  /** Kinds that the user may not list. */
  readonly forbidden: readonly string[];
}

const MOST_SIMILAR = 5;

export async function findObject(scope: Scope, target: ObjectTarget): Promise<FoundObject> {
  if (scope.namespace === undefined) throw usageError('one object is in one namespace: leave -A out');
  const resource = findKind(scope.resources, target.kind);
  const type = resource.type as ResourceType<EngineObject>;
  const ref = { name: target.name, namespace: namespaceOf(scope, type) };
  try {
    return { resource, type, ref, object: withKind(type, await scope.client.get(type, ref)) };
  } catch (error) {
    throw error instanceof NotFound ? await noSuchObject(scope, type, ref) : error;
  }
}

/** All of a kind, or of every kind with flows. */
export async function findObjects(scope: Scope, { kind }: Target): Promise<FoundObjects> {
  const resources = kind === undefined ? kindsOfCategory(scope.resources) : findKinds(scope.resources, kind);
  if (resources.length === 0)
    throw new UserError('no kind with task flows is in this cluster: taskflow install brings them');
  const lists = await Promise.all(
    resources.map(({ type }) => listKind(scope, type as ResourceType<EngineObject>)),
  );
  const denied = lists.filter(({ error }) => error !== undefined);
  if (denied.length === lists.length) throw denied[0]?.error ?? new Error('nothing can be listed');
  return {
    objects: lists.flatMap(({ objects }) => objects),
    types: lists.filter(({ error }) => error === undefined).map(({ type }) => type),
    forbidden: denied.map(({ type }) => resourceName(type)),
  };
}

interface KindList {
  readonly type: ResourceType<EngineObject>;
  readonly objects: readonly EngineObject[];
  readonly error?: ApiError;
}

async function listKind(scope: Scope, type: ResourceType<EngineObject>): Promise<KindList> {
  try {
    const objects: EngineObject[] = [];
    for await (const object of scope.client.listAll(type, { namespace: namespaceOf(scope, type) }))
      objects.push(object);
    return { type, objects };
  } catch (error) {
    // A kind may go between discovery and list.
    if (error instanceof NotFound) return { type, objects: [] };
    if (error instanceof Forbidden) return { type, objects: [], error };
    throw error;
  }
}

/** A single object comes with its kind; one of an older server may not. */
function withKind(type: ResourceType, object: EngineObject): EngineObject {
  return { ...object, kind: object.kind ?? type.kind };
}

async function noSuchObject(scope: Scope, type: ResourceType, ref: ObjectRef): Promise<UserError> {
  const here = ref.namespace === undefined ? '' : ` in namespace ${ref.namespace}`;
  return new UserError(
    `there is no ${type.kind} "${ref.name}"${here}; ${await otherChoices(scope, type, ref)}`,
  );
}

async function otherChoices(scope: Scope, type: ResourceType, ref: ObjectRef): Promise<string> {
  const everywhere = await refsOf(scope, type, undefined);
  const elsewhere = everywhere?.find(
    ({ name, namespace }) => name === ref.name && namespace !== ref.namespace,
  );
  if (elsewhere) return `there is one in namespace ${elsewhere.namespace}: add -n ${elsewhere.namespace}`;
  const here =
    everywhere?.filter(({ namespace }) => namespace === ref.namespace) ??
    (await refsOf(scope, type, ref.namespace));
  const names = similarNames(
    ref.name,
    (here ?? []).map(({ name }) => name),
  );
  if (names.length > 0) return `there are: ${names.join(', ')}`;
  return `see: kubectl get ${resourceName(type)}${type.namespaced ? ' -A' : ''}`;
}

/** Undefined where the user may not look. */
async function refsOf(
  { client }: Scope,
  type: ResourceType,
  namespace: string | undefined,
): Promise<ObjectRef[] | undefined> {
  try {
    const refs: ObjectRef[] = [];
    for await (const { metadata } of client.listAll(type, { namespace }))
      refs.push({ name: metadata.name, namespace: metadata.namespace });
    return refs;
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/** The most alike first: those that contain the other come before those with few differing letters. */
export function similarNames(wanted: string, names: readonly string[]): string[] {
  const distance = (name: string): number =>
    name.includes(wanted) || wanted.includes(name) ? 0 : editDistance(wanted, name);
  return names.toSorted((a, b) => distance(a) - distance(b) || a.localeCompare(b)).slice(0, MOST_SIMILAR);
}
