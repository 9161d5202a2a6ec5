/**
 * The Node object and its heartbeat. The Lease is renewed every 10 s, since
 * the controller manager takes a node with a stale one for dead and marks its
 * Pods; the status is refreshed every minute. Either is made anew if deleted.
 */
import { randomUUID } from 'node:crypto';
import { arch, cpus, platform, release, totalmem, type } from 'node:os';
import { type Lease, leases, namespaces, type Node, nodes } from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { AlreadyExists, Forbidden, NotFound } from '../../kube/errors.ts';
import type { Stored } from '../../kube/resource-type.ts';
import { DOMAIN } from './annotations.ts';
import type { NodeCapacity } from './downward-api.ts';
import { HOST_ADDRESS } from './pod-addresses.ts';
import { apiMicroTime, apiTime } from './timestamps.ts';

export interface NodeIdentity {
  readonly name: string;
  readonly kubeletPort: number;
}

type NodeStatus = NonNullable<Node['status']>;

const LEASE_NAMESPACE = 'kube-node-lease';
const LEASE_SECONDS = 40;
const HEARTBEAT_MS = 10_000;
const STATUS_MS = 60_000;
const MAX_PODS = '200';
const RIGHTS_TIMEOUT_MS = 10_000;
const RIGHTS_RETRY_MS = 50;

/** What the machine has, as a node's capacity tells it. Nothing enforces it. */
export function machineCapacity(): NodeCapacity {
  return {
    cpu: String(cpus().length),
    memory: `${Math.floor(totalmem() / 1024)}Ki`,
    'ephemeral-storage': '100Gi',
  };
}

export function nodeMetadata({ name }: NodeIdentity): NonNullable<Node['metadata']> {
  return {
    name,
    labels: {
      'kubernetes.io/hostname': name,
      'kubernetes.io/os': platform(),
      'kubernetes.io/arch': kubernetesArch(arch()),
      [`${DOMAIN}/stand-in`]: 'true',
    },
    annotations: {
      [`${DOMAIN}/description`]:
        'A stand-in for a kubelet: Pods of the image "process" are local processes, all others are only said to run.',
    },
  };
}

export function nodeStatus({ name, kubeletPort }: NodeIdentity, bootId: string, now: number): NodeStatus {
  const capacity = { ...machineCapacity(), pods: MAX_PODS };
  return {
    capacity,
    allocatable: capacity,
    addresses: [
      { type: 'InternalIP', address: HOST_ADDRESS },
      { type: 'Hostname', address: name },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
    nodeInfo: {
      architecture: kubernetesArch(arch()),
      bootID: bootId,
      containerRuntimeVersion: 'process://none',
      kernelVersion: release(),
      kubeProxyVersion: '',
      kubeletVersion: 'v0.0.0-virtual-node',
      machineID: name,
      operatingSystem: platform(),
      osImage: `virtual node, a stand-in for a kubelet, on ${type()}`,
      systemUUID: bootId,
    },
    conditions: nodeConditions(apiTime(now)),
  };
}

function nodeConditions(now: string): NonNullable<NodeStatus['conditions']> {
  const pressure = ['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((condition) => ({
    type: condition,
    status: 'False',
    reason: 'NotMeasured',
    message: 'the virtual node does not measure it',
    lastHeartbeatTime: now,
  }));
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'VirtualNodeReady',
    message: 'the virtual node runs Pods as processes',
    lastHeartbeatTime: now,
  };
  return [...pressure, ready];
}

/** Registers the node and keeps it alive until the signal aborts; resolves when it is Ready. */
export async function keepNode(
  client: KubeClient,
  identity: NodeIdentity,
  signal: AbortSignal,
  onError: (error: unknown) => void,
): Promise<void> {
  const keeper = new NodeKeeper(client, identity, signal);
  await onceAllowed(() => keeper.register(), signal);
  await keeper.heartbeat();
  const loop = async (everyMs: number, task: () => Promise<void>): Promise<void> => {
    for (;;) {
      await systemClock.sleep(everyMs, signal);
      if (signal.aborted) return;
      await task().catch((error: unknown) => signal.aborted || onError(error));
    }
  };
  void loop(HEARTBEAT_MS, () => keeper.heartbeat());
  void loop(STATUS_MS, () => keeper.register());
}

/** The API server learns of a role that was just granted by a watch of its own, a moment later. */
async function onceAllowed(task: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (const deadline = Date.now() + RIGHTS_TIMEOUT_MS; ; await systemClock.sleep(RIGHTS_RETRY_MS, signal)) {
    try {
      return await task();
    } catch (error) {
      if (!(error instanceof Forbidden) || Date.now() > deadline || signal.aborted) throw error;
    }
  }
}

class NodeKeeper {
  readonly #client: KubeClient;
  readonly #identity: NodeIdentity;
  readonly #signal: AbortSignal;
  readonly #bootId = randomUUID();
  #uid: string | undefined;
  #renewedAt = Date.now();

  constructor(client: KubeClient, identity: NodeIdentity, signal: AbortSignal) {
    this.#client = client;
    this.#identity = identity;
    this.#signal = signal;
  }

  async register(): Promise<void> {
    const { uid, status } = await this.#ensureNode();
    this.#uid = uid;
    const wanted = nodeStatus(this.#identity, this.#bootId, Date.now());
    const conditions = (wanted.conditions ?? []).map((condition) => ({
      ...condition,
      lastTransitionTime: transitionTime(status, condition),
    }));
    // A strategic merge would add to the addresses instead of replacing them.
    const addresses = [{ $patch: 'replace' }, ...(wanted.addresses ?? [])];
    const body = { metadata: { uid }, status: { ...wanted, conditions, addresses } };
    const { name } = this.#identity;
    await this.#client.patch(nodes, { name }, { kind: 'strategic', body }, this.#status());
  }

  async heartbeat(): Promise<void> {
    const { name } = this.#identity;
    const spec = {
      holderIdentity: name,
      leaseDurationSeconds: LEASE_SECONDS,
      renewTime: apiMicroTime(Date.now()),
    };
    const ref = { name, namespace: LEASE_NAMESPACE };
    try {
      await this.#client.patch(leases, ref, { kind: 'merge', body: { spec } }, this.#options());
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
      await this.#createLease({ metadata: { ...ref, ...this.#owner() }, spec });
    }
    // After a gap (a machine that slept) the node counts as dead until its status says otherwise.
    const gapMs = Date.now() - this.#renewedAt;
    this.#renewedAt = Date.now();
    if (gapMs > 1000 * LEASE_SECONDS) await this.register();
  }

  async #ensureNode(): Promise<{ uid: string; status: Node['status'] }> {
    const metadata = nodeMetadata(this.#identity);
    const { name } = this.#identity;
    const body = { metadata: { labels: metadata.labels, annotations: metadata.annotations } };
    let node: Stored<Node>;
    try {
      node = await this.#client.patch(nodes, { name }, { kind: 'merge', body }, this.#options());
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
      node = await this.#client.create(nodes, { metadata }, this.#options());
    }
    return { uid: node.metadata.uid, status: node.status };
  }

  /** The API server makes this namespace too, but not before it is ready. */
  async #createLease(lease: Lease): Promise<void> {
    try {
      await this.#client.create(leases, lease, this.#options());
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
      await this.#client
        .create(namespaces, { metadata: { name: LEASE_NAMESPACE } }, this.#options())
        .catch((failure: unknown) => {
          if (!(failure instanceof AlreadyExists)) throw failure;
        });
      await this.#client.create(leases, lease, this.#options());
    }
  }

  /** The Lease goes with its node. */
  #owner(): Pick<NonNullable<Lease['metadata']>, 'ownerReferences'> {
    if (this.#uid === undefined) return {};
    const { name } = this.#identity;
    return { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid: this.#uid }] };
  }

  #options(): { signal: AbortSignal } {
    return { signal: this.#signal };
  }

  #status(): { signal: AbortSignal; subresource: string } {
    return { signal: this.#signal, subresource: 'status' };
  }
}

function transitionTime(before: Node['status'], condition: { type: string; status: string }): string {
  const known = before?.conditions?.find((one) => one.type === condition.type);
  return known?.status === condition.status && known.lastTransitionTime !== undefined
    ? known.lastTransitionTime
    : apiTime(Date.now());
}

/** Go's names of architectures. */
function kubernetesArch(name: string): string {
  return name === 'x64' ? 'amd64' : name === 'ia32' ? '386' : name;
}
