/** The files of volumes that are made from objects (ConfigMap, Secret, downward API). Pure. */
import { configMaps, type ConfigMap, secrets, type Secret } from '../../kube/builtin-resources.ts';
import type { ResourceType } from '../../kube/resource-type.ts';
import { fieldValue, type NodeCapacity, type PodAddressFacts, resourceValue } from './downward-api.ts';
import { AwaitsObject } from './object-references.ts';
import { containersOf, specOf, type StoredPod } from './pod-spec.ts';

export interface VolumeFile {
  /** Below the volume's directory. */
  readonly path: string;
  readonly content: Buffer;
  readonly mode: number;
}

interface KeySelection {
  readonly items?: readonly { readonly key: string; readonly path: string; readonly mode?: number }[];
  readonly optional?: boolean;
  readonly defaultMode?: number | undefined;
}

const DEFAULT_MODE = 0o644;
/** Processes share one user with the rest of the machine: nobody else needs to read a secret. */
const OWNER_ONLY = 0o700;

export function configMapFiles(
  pod: StoredPod,
  name: string,
  object: ConfigMap | undefined,
  selection: KeySelection,
): VolumeFile[] {
  const data = {
    ...mapValues(object?.data, (value) => Buffer.from(value)),
    ...mapValues(object?.binaryData, (value) => Buffer.from(value, 'base64')),
  };
  return selected(
    { pod, kind: 'configmap', type: configMaps, name, found: object !== undefined },
    data,
    selection,
  );
}

export function secretFiles(
  pod: StoredPod,
  name: string,
  object: Secret | undefined,
  selection: KeySelection,
): VolumeFile[] {
  const data = mapValues(object?.data, (value) => Buffer.from(value, 'base64'));
  return selected(
    { pod, kind: 'secret', type: secrets, name, found: object !== undefined },
    data,
    selection,
  ).map((file) => ({ ...file, mode: file.mode & OWNER_ONLY }));
}

export function tokenFile(path: string, token: string): VolumeFile {
  return { path, content: Buffer.from(token), mode: 0o600 };
}

interface DownwardItem {
  readonly path: string;
  readonly mode?: number;
  readonly fieldRef?: { readonly fieldPath: string };
  readonly resourceFieldRef?: {
    readonly resource: string;
    readonly divisor?: string;
    readonly containerName?: string;
  };
}

export function downwardFiles(
  pod: StoredPod,
  items: readonly DownwardItem[],
  {
    addresses,
    node,
    defaultMode = DEFAULT_MODE,
  }: { addresses: PodAddressFacts; node: NodeCapacity; defaultMode?: number | undefined },
): VolumeFile[] {
  return items.map(({ path, mode = defaultMode, fieldRef, resourceFieldRef }) => {
    if (fieldRef) return { path, mode, content: Buffer.from(fieldValue(pod, fieldRef.fieldPath, addresses)) };
    const of = containersOf(specOf(pod)).find(
      ({ container }) => container.name === resourceFieldRef?.containerName,
    );
    if (!resourceFieldRef || !of) throw new Error(`downward API item "${path}" refers to nothing`);
    return { path, mode, content: Buffer.from(resourceValue(of.container, resourceFieldRef, node)) };
  });
}

interface SourceObject {
  readonly pod: StoredPod;
  readonly kind: 'configmap' | 'secret';
  readonly type: ResourceType;
  readonly name: string;
  readonly found: boolean;
}

function selected(
  source: SourceObject,
  data: Readonly<Record<string, Buffer>>,
  { items, optional = false, defaultMode = DEFAULT_MODE }: KeySelection,
): VolumeFile[] {
  const missing = (message: string): AwaitsObject =>
    new AwaitsObject(message, source.type, { name: source.name, namespace: source.pod.metadata.namespace });
  if (!source.found) {
    if (optional) return [];
    throw missing(`${source.kind} "${source.name}" not found`);
  }
  if (!items) return Object.entries(data).map(([path, content]) => ({ path, content, mode: defaultMode }));
  return items.flatMap(({ key, path, mode = defaultMode }) => {
    const content = data[key];
    if (content) return [{ path, content, mode }];
    if (optional) return [];
    throw missing(`${source.kind} "${source.name}" references non-existent key: ${key}`);
  });
}

function mapValues<V, R>(
  record: Readonly<Record<string, V>> | undefined,
  change: (value: V) => R,
): Record<string, R> {
  return Object.fromEntries(Object.entries(record ?? {}).map(([key, value]) => [key, change(value)]));
}
