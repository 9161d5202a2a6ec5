/** A client that notes which of its writes changed something. */
import type { KubeClient } from '../kube/client.ts';
import { NotFound } from '../kube/errors.ts';
import {
  type KubeObject,
  objectKey,
  type ObjectRef,
  resourceName,
  type ResourceType,
  type Stored,
} from '../kube/resource-type.ts';

export interface RecordedClient {
  readonly client: KubeClient;
  /** `create configmaps default/a`, in order. */
  readonly changes: readonly string[];
}

type Write = (type: ResourceType, target: KubeObject & ObjectRef, ...rest: unknown[]) => Promise<unknown>;

/** Writes whose effect shows in the version of the object that they are about. */
const WRITES = new Set(['create', 'update', 'patch', 'apply', 'delete']);

export function recordedClient(client: KubeClient): RecordedClient {
  const changes: string[] = [];
  const recorded = (verb: string, write: Write): Write => {
    return async (type, target, ...rest) => {
      const ref = refOf(target);
      const before = await find(client, type, ref);
      const answer = await write(type, target, ...rest);
      const after = await find(client, type, refOf({ ...target, ...(answer as KubeObject) }));
      if (versionOf(before) !== versionOf(after))
        changes.push(`${verb} ${resourceName(type)} ${objectKey(ref)}`);
      return answer;
    };
  };
  const proxy = new Proxy(client, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== 'function') return member;
      const method = member.bind(target) as Write;
      return typeof property === 'string' && WRITES.has(property) ? recorded(property, method) : method;
    },
  });
  return { client: proxy, changes };
}

/** Writes take an object or a reference to one; the name may be the server's to find. */
function refOf({ metadata, name, namespace }: KubeObject & ObjectRef): ObjectRef {
  return metadata ? { name: metadata.name ?? '', namespace: metadata.namespace } : { name, namespace };
}

async function find(client: KubeClient, type: ResourceType, ref: ObjectRef): Promise<Stored | undefined> {
  if (ref.name === '') return undefined;
  try {
    return await client.get(type, ref);
  } catch (error) {
    if (error instanceof NotFound) return undefined;
    throw error;
  }
}

function versionOf(object: Stored | undefined): string | undefined {
  return object && `${object.metadata.uid}/${object.metadata.resourceVersion}`;
}
