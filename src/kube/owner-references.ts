/** Who owns an object. Owners take their objects with them when they go. */
import type { KubeObject, ObjectMeta, Stored } from './resource-type.ts';

export type OwnerReference = NonNullable<ObjectMeta['ownerReferences']>[number];

/** The object has a controller, and it is not the one that wants it. */
export class AlreadyOwned extends Error {
  readonly owner: OwnerReference;

  constructor(object: KubeObject, owner: OwnerReference) {
    super(`${describe(object)} is controlled by ${owner.kind} "${owner.name}" already`);
    this.name = 'AlreadyOwned';
    this.owner = owner;
  }
}

export function ownerReferenceTo(
  owner: Stored,
  { controller = true }: { readonly controller?: boolean } = {},
): OwnerReference {
  const { apiVersion, kind, metadata } = owner;
  if (apiVersion === undefined || kind === undefined)
    throw new Error(`an owner needs apiVersion and kind; "${metadata.name}" has none`);
  return {
    apiVersion,
    kind,
    name: metadata.name,
    uid: metadata.uid,
    // The owner stays until the object is gone, if it is deleted in the foreground.
    ...(controller && { controller: true, blockOwnerDeletion: true }),
  };
}

export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata?.ownerReferences?.find(({ controller }) => controller);
}

export function isOwnedBy(object: KubeObject, ownerUid: string): boolean {
  return object.metadata?.ownerReferences?.some(({ uid }) => uid === ownerUid) ?? false;
}

/** The object with the owner as its controller. References to others stay. */
export function withController<T extends KubeObject>(object: T, owner: Stored): T {
  refuseForeignNamespace(object, owner);
  const current = controllerOf(object);
  if (current && current.uid !== owner.metadata.uid) throw new AlreadyOwned(object, current);
  return withReference(object, ownerReferenceTo(owner));
}

/** The object with one more owner, which does not control it. */
export function withOwner<T extends KubeObject>(object: T, owner: Stored): T {
  refuseForeignNamespace(object, owner);
  return withReference(object, ownerReferenceTo(owner, { controller: false }));
}

function withReference<T extends KubeObject>(object: T, reference: OwnerReference): T {
  const others = (object.metadata?.ownerReferences ?? []).filter(({ uid }) => uid !== reference.uid);
  return { ...object, metadata: { ...object.metadata, ownerReferences: [...others, reference] } };
}

/** The garbage collector would delete the object at once, since it looks for the owner beside it. */
function refuseForeignNamespace(object: KubeObject, owner: Stored): void {
  const { namespace } = owner.metadata;
  if (namespace === undefined || namespace === object.metadata?.namespace) return;
  throw new Error(
    `${describe(object)} cannot be owned by "${namespace}/${owner.metadata.name}", which is in another namespace`,
  );
}

function describe({ kind, metadata }: KubeObject): string {
  const { name = '', namespace } = metadata ?? {};
  return `${kind ?? 'object'} "${namespace === undefined ? name : `${namespace}/${name}`}"`;
}
