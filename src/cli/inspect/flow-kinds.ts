/** Whether a kind has task flows at all: its status must have a place for them. */
import { ApiError } from '../../kube/errors.ts';
import { resourceName } from '../../kube/resource-type.ts';
import { type CustomResourceDefinition, customResourceDefinitions } from '../../kube/schema/crd.ts';
import { UserError } from '../user-error.ts';
import type { FoundObject } from './find-objects.ts';
import { CATEGORY, kindsOfCategory } from './kind-lookup.ts';
import type { Scope } from './scope.ts';

export async function refuseKindWithoutFlows(scope: Scope, found: FoundObject): Promise<void> {
  const { object, resource, type } = found;
  if (object.status?.operationContext || object.status?.operationHistory) return;
  const crd = type.group === '' ? undefined : await readCrd(scope, resourceName(type));
  if (crd === 'unreadable' ? resource.categories.includes(CATEGORY) : crd && hasFlows(crd, type.version))
    return;
  const known = kindsOfCategory(scope.resources).map(({ type: { plural } }) => plural);
  throw new UserError(
    `${resourceName(type)} have no task flows: their status has no operationContext\n` +
      `Kinds of taskflow here: ${known.toSorted().join(', ') || 'none'}. ` +
      `If this should be one, its definition may be old: kubectl explain ${resourceName(type)}.status`,
  );
}

/** Undefined for kinds that are built in; ordinary users may not be allowed to see definitions. */
async function readCrd(
  { client }: Scope,
  name: string,
): Promise<CustomResourceDefinition | 'unreadable' | undefined> {
  try {
    return await client.get(customResourceDefinitions, { name });
  } catch (error) {
    if (error instanceof ApiError) return error.code === 404 ? undefined : 'unreadable';
    throw error;
  }
}

export function hasFlows({ spec }: CustomResourceDefinition, version: string): boolean {
  const root = spec.versions.find(({ name }) => name === version)?.schema.openAPIV3Schema;
  const status = root?.properties?.['status'];
  return (
    status?.properties?.['operationContext'] !== undefined ||
    status?.['x-kubernetes-preserve-unknown-fields'] === true
  );
}
