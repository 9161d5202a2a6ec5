/** Reading a Pod's spec: which containers it has, in which part, and which of them are processes. */
import type { Pod } from '../../kube/builtin-resources.ts';
import type { Stored } from '../../kube/resource-type.ts';

export type StoredPod = Stored<Pod>;
export type PodSpec = NonNullable<Pod['spec']>;
export type Container = PodSpec['containers'][number];
export type Volume = NonNullable<PodSpec['volumes']>[number];
export type Probe = NonNullable<Container['readinessProbe']>;

/** `init` runs to its end before the next; `sidecar` is an init container that stays. */
export type Role = 'init' | 'sidecar' | 'main';

export interface PodContainer {
  readonly container: Container;
  readonly role: Role;
}

/** In the order in which they start. */
export function containersOf(spec: PodSpec): PodContainer[] {
  return [
    ...(spec.initContainers ?? []).map((container) => ({
      container,
      role: container.restartPolicy === 'Always' ? ('sidecar' as const) : ('init' as const),
    })),
    ...spec.containers.map((container) => ({ container, role: 'main' as const })),
  ];
}

/** `process`, `process/<name>`, with or without a tag or digest. */
export function isProcessImage(image: string | undefined): boolean {
  return /^process(\/[^:@]+)?(:[^:@/]+)?(@[^@]+)?$/.test(image ?? '');
}

export function specOf(pod: Pod): PodSpec {
  if (!pod.spec) throw new Error(`Pod "${pod.metadata?.name ?? ''}" has no spec`);
  return pod.spec;
}
