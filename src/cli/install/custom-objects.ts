/** The objects of our kinds that a cluster has. */
import type { KubeClient } from '../../kube/client.ts';
import { NotFound } from '../../kube/errors.ts';
import {
  defineResource,
  objectKey,
  type ObjectRef,
  type ResourceType,
  type Stored,
} from '../../kube/resource-type.ts';
import { type CustomResourceDefinition, customResourceDefinitions } from '../../kube/schema/crd.ts';
import { refOf } from './apply-object.ts';
import { selectorOf } from './names.ts';

export interface CustomObject extends ObjectRef {
  readonly type: ResourceType;
  readonly finalizers: readonly string[];
}

/** The kinds that the installation of this name brought, from the cluster itself: also those of other versions. */
export async function installedCrds(
  client: KubeClient,
  name: string,
): Promise<Stored<CustomResourceDefinition>[]> {
  const found: Stored<CustomResourceDefinition>[] = [];
  const labelSelector = selectorOf(name);
  for await (const crd of client.listAll(customResourceDefinitions, { labelSelector })) found.push(crd);
  return found;
}

export async function customObjects(
  client: KubeClient,
  crds: readonly CustomResourceDefinition[],
): Promise<CustomObject[]> {
  const found: CustomObject[] = [];
  for (const type of crds.flatMap(servedType)) {
    try {
      for await (const object of client.listAll(type))
        found.push({ type, ...refOf(object), finalizers: object.metadata.finalizers ?? [] });
    } catch (error) {
      // A kind that is being deleted, or was never established, has no objects.
      if (!(error instanceof NotFound)) throw error;
    }
  }
  return found;
}

/** `widgets.test.taskflow.dev demo/first`: the two words that kubectl wants. */
export function describeCustomObject({ type, name, namespace }: CustomObject): string {
  return `${type.plural}.${type.group} ${objectKey({ name, namespace })}`;
}

/** The finalizers of the API server itself have somebody who removes them. */
export function foreignToServer(finalizers: readonly string[]): readonly string[] {
  return finalizers.filter((finalizer) => finalizer.includes('/') || finalizer.includes('.'));
}

/** Any served version shows all objects. */
function servedType({ spec }: CustomResourceDefinition): ResourceType[] {
  const version = spec.versions.find(({ served }) => served);
  if (!version) return [];
  const { kind, plural } = spec.names;
  return [defineResource(`${spec.group}/${version.name}`, kind, plural, spec.scope)];
}
