/** What a container may learn of its own Pod: `fieldRef` and `resourceFieldRef`. Pure. */
import type { StoredPod, Container } from './pod-spec.ts';
import { ceilDivide, thousandths, wholeUnits } from './quantity.ts';

export interface PodAddressFacts {
  readonly podIP: string;
  readonly hostIP: string;
}

export interface NodeCapacity {
  readonly cpu: string;
  readonly memory: string;
  readonly 'ephemeral-storage': string;
}

const SUBSCRIPTED = /^metadata\.(labels|annotations)\['(.+)'\]$/;

export function fieldValue(pod: StoredPod, path: string, { podIP, hostIP }: PodAddressFacts): string {
  const { metadata, spec } = pod;
  const [, map, key] = SUBSCRIPTED.exec(path) ?? [];
  if (map !== undefined && key !== undefined) return metadata[map as 'labels' | 'annotations']?.[key] ?? '';
  switch (path) {
    case 'metadata.name':
      return metadata.name;
    case 'metadata.namespace':
      return metadata.namespace ?? '';
    case 'metadata.uid':
      return metadata.uid;
    case 'metadata.labels':
      return quotedLines(metadata.labels);
    case 'metadata.annotations':
      return quotedLines(metadata.annotations);
    case 'spec.nodeName':
      return spec?.nodeName ?? '';
    case 'spec.serviceAccountName':
      return spec?.serviceAccountName ?? '';
    case 'status.podIP':
    case 'status.podIPs':
      return podIP;
    case 'status.hostIP':
    case 'status.hostIPs':
      return hostIP;
    default:
      throw new Error(`field path "${path}" is not supported`);
  }
}

export interface ResourceSelector {
  readonly resource: string;
  readonly divisor?: string;
}

/** A limit that is not set is the node's capacity, as the kubelet has it. */
export function resourceValue(container: Container, selector: ResourceSelector, node: NodeCapacity): string {
  const [kind = '', ...rest] = selector.resource.split('.');
  const name = rest.join('.') as keyof NodeCapacity;
  const { limits = {}, requests = {} } = container.resources ?? {};
  const quantity =
    kind === 'limits'
      ? (limits[name] ?? node[name])
      : kind === 'requests'
        ? (requests[name] ?? '0')
        : undefined;
  if (quantity === undefined) throw new Error(`unsupported container resource: ${selector.resource}`);
  const divisor = selector.divisor === undefined || selector.divisor === '0' ? '1' : selector.divisor;
  return name === 'cpu'
    ? String(ceilDivide(thousandths(quantity), thousandths(divisor)))
    : String(ceilDivide(wholeUnits(quantity), wholeUnits(divisor)));
}

/** The format of downward API files: sorted, one `key="value"` a line. */
function quotedLines(map: Readonly<Record<string, string>> = {}): string {
  return Object.keys(map)
    .toSorted()
    .map((key) => `${key}=${JSON.stringify(map[key])}`)
    .join('\n');
}
