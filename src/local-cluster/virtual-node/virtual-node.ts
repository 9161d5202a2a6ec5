/**
 * A stand-in for a kubelet, a scheduler and a volume provisioner, for control
 * planes without machines: one Node whose Pods are processes of this machine
 * (image `process`) or are only said to run (any other image).
 *
 * One runner per Pod, kept by uid, fed by one watch on the Pods of this node.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Pod, pods } from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type Change, Reflector } from '../../kube/reflector.ts';
import type { ProcessKeeper } from '../processes/process-keeper.ts';
import { KubeletServer } from './kubelet-server.ts';
import { keepNode, machineCapacity } from './node-object.ts';
import { ObjectReferences } from './object-references.ts';
import { DEFAULT_NODE_NAME } from './permissions.ts';
import { hasLoopbackNetwork, loopbackNetwork, type PodAddresses, singleAddress } from './pod-addresses.ts';
import { PodRunner, type PodRunnerContext } from './pod-runner.ts';
import { removeOrphans } from './pod-sandbox.ts';
import { restartBackoff } from './restart-policy.ts';
import { Scheduler } from './scheduler.ts';
import { VolumeProvisioner } from './volume-provisioner.ts';

export interface VirtualNodeOptions {
  /** Authenticates as VIRTUAL_NODE_USER. */
  readonly client: KubeClient;
  readonly keeper: ProcessKeeper;
  /** Everything it writes is below. */
  readonly dir: string;
  /** Default `virtual-node`; the rules of permissions.ts name it. */
  readonly name?: string;
  /** 1 to 4: Pod addresses are 127.(16+index).x.y, one per Pod. */
  readonly networkIndex: number;
  /** TLS of the kubelet endpoint; only the API server, by a certificate of that authority, is served. */
  readonly serving: { readonly certPem: string; readonly keyPem: string; readonly clientCaPem: string };
  readonly apiServer: { readonly host: string; readonly port: number; readonly caPem: string };
  /** How long a container that is only pretended takes to run; default 50. */
  readonly startDelayMs?: number;
  /** First pause between restarts, doubled up to 30 times as long; default 1000 (a kubelet's: 10 000). */
  readonly restartBackoffMs?: number;
  readonly onError?: (error: unknown) => void;
}

export interface VirtualNode {
  readonly name: string;
  readonly kubeletPort: number;
  /** Ends the processes and leaves all objects as they are. */
  stop(): Promise<void>;
}

const DEFAULT_START_DELAY_MS = 50;
const DEFAULT_RESTART_BACKOFF_MS = 1000;

/** Resolves when the Node object is Ready. */
export async function startVirtualNode(options: VirtualNodeOptions): Promise<VirtualNode> {
  const { client, dir, name = DEFAULT_NODE_NAME, onError = () => {} } = options;
  const stopping = new AbortController();
  const addresses = await podAddresses(options.networkIndex, onError);
  const references = new ObjectReferences(client, onError);
  const podsDir = join(dir, 'pods');
  await mkdir(podsDir, { recursive: true, mode: 0o700 });
  const runners = new PodRunners({
    client,
    keeper: options.keeper,
    references,
    addresses,
    podsDir,
    apiServer: options.apiServer,
    node: machineCapacity(),
    backoff: restartBackoff(options.restartBackoffMs ?? DEFAULT_RESTART_BACKOFF_MS),
    startDelayMs: options.startDelayMs ?? DEFAULT_START_DELAY_MS,
    signal: stopping.signal,
    onError,
  });
  const server = new KubeletServer({
    serving: options.serving,
    runnerOf: (namespace, pod) => runners.named(namespace, pod),
    runners: () => runners.all(),
    onError,
  });
  const bound = new Reflector({
    client,
    type: pods,
    fieldSelector: `spec.nodeName=${name}`,
    onChange: (change) => runners.apply(change),
    onError,
  });
  const provisioner = new VolumeProvisioner({ client, dir: join(dir, 'volumes'), onError });
  const scheduler = new Scheduler({ client, nodeName: name, onError });
  const stop = async (): Promise<void> => {
    stopping.abort();
    await Promise.all([runners.stop(), bound.stop(), scheduler.stop(), provisioner.stop(), server.close()]);
    await references.stop();
  };
  try {
    const kubeletPort = await server.listen();
    // First, since it waits for the rights that everything else needs too.
    await keepNode(client, { name, kubeletPort }, stopping.signal, onError);
    await provisioner.start();
    bound.start();
    // Pods of an earlier life take their addresses back before new ones come.
    await bound.synced;
    await removeOrphans(podsDir, (uid) => runners.has(uid));
    await scheduler.start();
    return { name, kubeletPort, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

class PodRunners {
  readonly #context: PodRunnerContext;
  readonly #byUid = new Map<string, PodRunner>();
  #stopped = false;

  constructor(context: PodRunnerContext) {
    this.#context = context;
  }

  all(): Iterable<PodRunner> {
    return this.#byUid.values();
  }

  /** The newest of that name: the one before may still be ending. */
  named(namespace: string, name: string): PodRunner | undefined {
    return [...this.#byUid.values()].findLast(
      ({ pod: { metadata } }) => metadata.namespace === namespace && metadata.name === name,
    );
  }

  has(uid: string): boolean {
    return this.#byUid.has(uid);
  }

  apply({ type, object }: Change<Pod>): void {
    if (this.#stopped) return;
    const { uid } = object.metadata;
    const runner = this.#byUid.get(uid);
    if (type === 'deleted') runner?.remove();
    else if (runner) runner.update(object);
    else this.#add(uid, new PodRunner(this.#context, object));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#byUid.values()].map((runner) => runner.stop()));
  }

  #add(uid: string, runner: PodRunner): void {
    this.#byUid.set(uid, runner);
    void runner.gone.then(() => this.#byUid.delete(uid));
  }
}

async function podAddresses(index: number, onError: (error: unknown) => void): Promise<PodAddresses> {
  if (await hasLoopbackNetwork(index)) return loopbackNetwork(index);
  onError(
    new Error(
      `this machine has 127.0.0.1 as its only loopback address, so all Pods share it: ` +
        `two Pods cannot listen on the same port, and a Pod is not reachable by an address of its own`,
    ),
  );
  return singleAddress;
}
