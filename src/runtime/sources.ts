/** Where a controller's keys come from: objects of its kind, what they own, anything mapped to them. */
import type { Change } from '../kube/change.ts';
import type { Informer } from '../kube/informer.ts';
import {
  annotationsChanged,
  deletionStarted,
  finalizersChanged,
  generationChanged,
  labelsChanged,
  or,
  type Predicate,
} from '../kube/predicates.ts';
import {
  apiVersionOf,
  type KubeObject,
  objectKey,
  type ResourceType,
  type Stored,
} from '../kube/resource-type.ts';
import type { Source } from './controller.ts';
import type { Priority } from './work-queue.ts';

/** What a user can change of an object; its status is the controller's own business. */
export const userChanged: Predicate = or(
  generationChanged,
  labelsChanged,
  annotationsChanged,
  deletionStarted,
  finalizersChanged,
);

/** The controller's own kind. */
export function forKind<T extends KubeObject>(
  informer: Informer<T>,
  predicate: Predicate<T> = userChanged,
): Source {
  return watches(informer, (object) => [objectKey(object.metadata)], predicate);
}

/** Objects that one of this kind controls: a change wakes the owner. */
export function owns<T extends KubeObject>(
  informer: Informer<T>,
  owner: ResourceType,
  predicate?: Predicate<T>,
): Source {
  return watches(informer, (object) => ownersOf(object, owner), predicate);
}

/** Anything that can be mapped to keys. Changes that are only our own writes do not wake anybody. */
export function watches<T extends KubeObject>(
  informer: Informer<T>,
  map: (object: Stored<T>) => readonly string[],
  predicate?: Predicate<T>,
): Source {
  return (enqueue) =>
    informer.subscribe(
      (change) => {
        if (change.own) return;
        const before = change.type === 'updated' ? map(change.old) : [];
        for (const key of new Set([...before, ...map(change.object)])) enqueue(key, priorityOf(change));
      },
      predicate ? { predicate } : {},
    );
}

function ownersOf({ metadata }: Stored, owner: ResourceType): string[] {
  return (metadata.ownerReferences ?? [])
    .filter(
      ({ controller, kind, apiVersion }) => controller && kind === owner.kind && sameGroup(apiVersion, owner),
    )
    .map(({ name }) => objectKey({ name, namespace: owner.namespaced ? metadata.namespace : undefined }));
}

/** An owner may be referred to in any of its versions. */
function sameGroup(apiVersion: string, owner: ResourceType): boolean {
  return apiVersion.split('/', 1)[0] === apiVersionOf(owner).split('/', 1)[0];
}

/** Only what somebody did just now is urgent. */
function priorityOf<T extends KubeObject>({ origin }: Change<T>): Priority {
  return origin === 'initial' || origin === 'resync' ? 'background' : 'normal';
}
