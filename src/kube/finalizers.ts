/**
 * Our own finalizers, and never anybody else's. Added by a merge patch that
 * holds only for the version it was made for, since it sends the whole list;
 * removed by a JSON patch that tests the one entry it removes, so that others
 * who write the object meanwhile are not in the way.
 */
import type { CallOptions, KubeClient } from './client.ts';
import { Conflict, Invalid, NotFound } from './errors.ts';
import { type KubeObject, objectKey, resourceName, type ResourceType, type Stored } from './resource-type.ts';

/** As upstream's retry on conflict. */
const TRIES = 5;

export function hasFinalizer(object: KubeObject, finalizer: string): boolean {
  return object.metadata?.finalizers?.includes(finalizer) ?? false;
}

/** The object with the finalizer; as it is if it has it. Refuses an object that is being deleted, as the API does. */
export async function addFinalizer<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  object: Stored<T>,
  finalizer: string,
  options: CallOptions = {},
): Promise<Stored<T>> {
  return withFreshObject(client, type, object, options, async (current) => {
    if (hasFinalizer(current, finalizer)) return current;
    if (current.metadata.deletionTimestamp !== undefined)
      throw new Error(
        `${resourceName(type)} "${objectKey(current.metadata)}" is being deleted: finalizer ${finalizer} cannot be added`,
      );
    const { resourceVersion, uid, finalizers = [] } = current.metadata;
    const body = { metadata: { resourceVersion, uid, finalizers: [...finalizers, finalizer] } };
    return client.patch(type, current.metadata, { kind: 'merge', body }, options);
  });
}

/** The object without the finalizer, or undefined if it is gone, maybe by that. */
export async function removeFinalizer<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  object: Stored<T>,
  finalizer: string,
  options: CallOptions = {},
): Promise<Stored<T> | undefined> {
  try {
    return await withFreshObject(client, type, object, options, async (current) => {
      const at = current.metadata.finalizers?.indexOf(finalizer) ?? -1;
      if (at === -1) return current;
      const path = `/metadata/finalizers/${at}`;
      const body = [
        { op: 'test', path: '/metadata/uid', value: current.metadata.uid },
        { op: 'test', path, value: finalizer },
        { op: 'remove', path },
      ];
      return client.patch(type, current.metadata, { kind: 'json', body }, options);
    });
  } catch (error) {
    if (error instanceof NotFound) return undefined;
    throw error;
  }
}

/** First with what we have, then, if somebody was faster, with what the server has. */
async function withFreshObject<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  object: Stored<T>,
  options: CallOptions,
  write: (current: Stored<T>) => Promise<Stored<T>>,
): Promise<Stored<T>> {
  let current = object;
  for (let tries = 1; ; tries++) {
    try {
      return await write(current);
    } catch (error) {
      // A test of a JSON patch that does not hold is Invalid to the server.
      if (tries >= TRIES || !(error instanceof Conflict || error instanceof Invalid)) throw error;
    }
    current = await client.get(type, object.metadata, options);
    // Another object of the same name is not the one we were asked about.
    if (current.metadata.uid !== object.metadata.uid)
      throw new NotFound(
        { verb: 'patch', resource: resourceName(type), object: objectKey(object.metadata) },
        404,
        {
          reason: 'NotFound',
          message: `the object with uid ${object.metadata.uid} is gone`,
        },
      );
  }
}
