/** One object, applied by the server, and what that changed. */
import { isDeepStrictEqual } from 'node:util';
import type { KubeClient } from '../../kube/client.ts';
import { Conflict, NotFound } from '../../kube/errors.ts';
import type { KubeObject, ObjectRef, ResourceType, Stored } from '../../kube/resource-type.ts';
import { UserError } from '../user-error.ts';
import { FIELD_MANAGER } from './names.ts';
import { describeObject, typeOf } from './object-types.ts';

export type Outcome = 'created' | 'configured' | 'unchanged';

export interface ApplyOptions {
  /** The server checks and answers, and stores nothing. */
  readonly dryRun?: boolean;
  /** Take over fields that somebody else set to something else. */
  readonly forceConflicts?: boolean;
  readonly signal?: AbortSignal;
}

export interface Applied {
  readonly outcome: Outcome;
  readonly object: Stored;
}

export async function applyObject(
  client: KubeClient,
  object: KubeObject,
  { dryRun = false, forceConflicts = false, signal }: ApplyOptions,
): Promise<Applied> {
  const type = typeOf(object);
  const before = await find(client, type, refOf(object), signal);
  try {
    const after = await client.apply(type, object, {
      fieldManager: FIELD_MANAGER,
      force: forceConflicts,
      dryRun,
      ...(signal && { signal }),
    });
    return { outcome: outcomeOf(before, after), object: after };
  } catch (error) {
    throw isManagerConflict(error) ? managedByOthers(type, object, error) : error;
  }
}

export async function find<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  ref: ObjectRef,
  signal?: AbortSignal,
): Promise<Stored<T> | undefined> {
  try {
    return await client.get(type, ref, signal ? { signal } : {});
  } catch (error) {
    if (error instanceof NotFound) return undefined;
    throw error;
  }
}

export function refOf({ metadata }: KubeObject): ObjectRef {
  return { name: metadata?.name ?? '', namespace: metadata?.namespace };
}

/** Not by the version alone: a dry run tells of no new one, and controllers write the status meanwhile. */
function outcomeOf(before: Stored | undefined, after: Stored): Outcome {
  if (!before) return 'created';
  return isDeepStrictEqual(content(before), content(after)) ? 'unchanged' : 'configured';
}

function content(object: Stored & { status?: unknown }): object {
  const { metadata, status: _, ...rest } = object;
  const { managedFields: __, resourceVersion: ___, generation: ____, ...lasting } = metadata;
  return { ...rest, metadata: lasting };
}

function isManagerConflict(error: unknown): error is Conflict {
  return (
    error instanceof Conflict &&
    (error.status.details?.causes?.some(({ reason }) => reason === 'FieldManagerConflict') ?? false)
  );
}

function managedByOthers(type: ResourceType, object: KubeObject, error: Conflict): UserError {
  const fields = (error.status.details?.causes ?? []).map(
    ({ field = '', message = '' }) => `\n  ${field}: ${message}`,
  );
  return new UserError(
    `${describeObject(type, object)}: somebody else set fields to other values:${fields.join('')}\n` +
      'With --force-conflicts they become what this installation wants.',
  );
}
