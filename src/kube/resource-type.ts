/**
 * How a kind is addressed in the API, and the raw JSON shape of its objects.
 * Types come from the official client; its classes do not, since they turn
 * timestamps into Date objects in some answers and leave them strings in others.
 */
import type * as k8s from '@kubernetes/client-node';

/** The JSON form of one of the official client's model classes. */
export type Json<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? Json<Item>[]
    : T extends object
      ? { [Key in keyof T]: Json<T[Key]> }
      : T;

export type ObjectMeta = Json<k8s.V1ObjectMeta>;

/** Any object as it is sent; `metadata.name` may be missing where a name is generated. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/** An object as the API server returns it. */
export type Stored<T extends KubeObject = KubeObject> = T & {
  metadata: ObjectMeta & { name: string; uid: string; resourceVersion: string };
};

export interface ResourceType<T extends KubeObject = KubeObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Never set: carries the object's type. */
  readonly objectType?: T;
}

export interface ObjectRef {
  readonly name: string;
  readonly namespace?: string | undefined;
}

export function defineResource<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
  scope: 'Namespaced' | 'Cluster',
): ResourceType<T> {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion];
  return { group: group ?? '', version: version ?? '', plural, kind, namespaced: scope === 'Namespaced' };
}

export function apiVersionOf(type: ResourceType): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

/** `pods`, `jobs.batch`: as kubectl names a resource. */
export function resourceName(type: ResourceType): string {
  return type.group === '' ? type.plural : `${type.plural}.${type.group}`;
}

export interface PathParts {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

export function resourcePath(type: ResourceType, { namespace, name, subresource }: PathParts = {}): string {
  const base = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const segments = [
    ...(type.namespaced && namespace !== undefined ? ['namespaces', namespace] : []),
    type.plural,
    ...(name === undefined ? [] : [name]),
    ...(subresource === undefined ? [] : subresource.split('/')),
  ];
  return [base, ...segments.map(encodeURIComponent)].join('/');
}

/** `namespace/name`, or the bare name of a cluster-wide object. */
export function objectKey(ref: { name?: string | undefined; namespace?: string | undefined }): string {
  return ref.namespace === undefined ? (ref.name ?? '') : `${ref.namespace}/${ref.name ?? ''}`;
}
