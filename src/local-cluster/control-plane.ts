/**
 * A real Kubernetes control plane on this machine: one etcd, and for every
 * cluster a kube-apiserver on its own etcd prefix, a kube-controller-manager
 * and a virtual node. Loopback only, free ports, everything in one directory.
 */
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { KubeClient } from '../kube/client.ts';
import { openConnection } from '../kube/connection.ts';
import { type BinaryEvent, findBinaries, type KubeBinaries } from './binaries/find-binaries.ts';
import { awaitReady, childDied, ChildDiedError } from './child-watch.ts';
import { announceClusters, claimDirectory, releaseClaim } from './claim.ts';
import { Cluster } from './cluster.ts';
import { clusterPki, type EtcdPki, etcdPki } from './pki.ts';
import { PlaneDirectory, readIfPresent, writePrivateFile } from './plane-directory.ts';
import { MAX_CLUSTERS } from './limits.ts';
import { arePortsFree, freePorts } from './ports.ts';
import { etcdFlags } from './program-flags.ts';
import type { ManagedProcess } from './processes/managed-process.ts';
import { ProcessKeeper, type ProcessSpec } from './processes/process-keeper.ts';
import { startClusterNode } from './cluster-node.ts';
import type { VirtualNode } from './virtual-node/virtual-node.ts';
import { VIRTUAL_NODE_USER } from './virtual-node/permissions.ts';

export interface ControlPlaneOptions {
  /** Everything the plane writes is below; made if absent, kept after stop() unless `ephemeral`. */
  readonly dir: string;
  /** 1 to 4, default 1. */
  readonly clusters?: number;
  /** Default true: garbage collection, namespace deletion, Jobs, … */
  readonly controllerManager?: boolean;
  /** Default true: Pods run (as processes). */
  readonly virtualNode?: boolean;
  /** Default true: etcd syncs every write to disk. False is for tests. */
  readonly durable?: boolean;
  /** Start with an empty `dir`, and remove it on stop() or after `kill -9` of this process. */
  readonly ephemeral?: boolean;
  /** Write an audit log of every request. */
  readonly audit?: boolean;
  readonly binaries?: KubeBinaries;
  readonly signal?: AbortSignal;
  readonly report?: (event: PlaneEvent) => void;
}

export type PlaneEvent =
  | BinaryEvent
  | { readonly type: 'started'; readonly what: string; readonly ms: number }
  | { readonly type: 'warning'; readonly message: string };

export interface ControlPlane extends AsyncDisposable {
  readonly dir: string;
  readonly version: string;
  /** The Kubernetes programs it runs, kubectl among them. */
  readonly binaries: KubeBinaries;
  readonly clusters: readonly [Cluster, ...Cluster[]];
  /** From the call to ready, without the search for binaries. */
  readonly startedInMs: number;
  /** Resolves if a program ends by itself; never after stop(). */
  readonly failed: Promise<Error>;
  /** Runs a program that belongs to the plane: it ends before the plane does, and its death is the plane's. */
  spawn(guest: Guest): ManagedProcess;
  stop(): Promise<void>;
}

/** A program beside the control plane, such as the operator. Its log is with the others. */
export type Guest = Pick<ProcessSpec, 'name' | 'command' | 'args' | 'env'>;

const PORT_ATTEMPTS = 3;
const READY_TIMEOUT_MS = 60_000;
const ETCD_STOP_GRACE_MS = 2_000;
const GUEST_STOP_GRACE_MS = 5_000;

export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const count = options.clusters ?? 1;
  if (!Number.isInteger(count) || count < 1 || count > MAX_CLUSTERS)
    throw new RangeError(`clusters must be a whole number from 1 to ${MAX_CLUSTERS}, not ${count}`);
  const binaries =
    options.binaries ??
    (await findBinaries({
      ...(options.signal && { signal: options.signal }),
      ...(options.report && { report: options.report }),
    }));
  const directory = new PlaneDirectory(resolve(options.dir));
  await directory.prepare();
  await claimDirectory(directory);
  try {
    if (options.ephemeral) await directory.clear();
    return await withFreePorts(directory, count, (ports) =>
      new Launch(directory, binaries, options, ports).run(),
    );
  } catch (error) {
    await releaseClaim(directory);
    if (options.ephemeral) await removeDirectory(directory);
    throw error;
  }
}

interface Ports {
  readonly etcdClient: number;
  readonly etcdPeer: number;
  readonly clusters: readonly { readonly apiServer: number; readonly controllerManager: number }[];
}

/** One start of all programs; what it began it also ends, if it fails in the middle or is stopped. */
class Launch {
  readonly #directory: PlaneDirectory;
  readonly #binaries: KubeBinaries;
  readonly #options: ControlPlaneOptions;
  readonly #ports: Ports;
  readonly #keeper: ProcessKeeper;
  readonly #failed = Promise.withResolvers<Error>();
  readonly #startedAt = performance.now();
  #clusters: Cluster[] = [];
  #nodes: VirtualNode[] = [];
  #guests: ManagedProcess[] = [];
  #etcd: ManagedProcess | undefined;
  #stopping: Promise<void> | undefined;
  #ending = false;

  constructor(directory: PlaneDirectory, binaries: KubeBinaries, options: ControlPlaneOptions, ports: Ports) {
    this.#directory = directory;
    this.#binaries = binaries;
    this.#options = options;
    this.#ports = ports;
    this.#keeper = new ProcessKeeper({
      dir: directory.pids(),
      removeIfOrphaned: options.ephemeral ? [directory.path] : [],
    });
  }

  async run(): Promise<ControlPlane> {
    try {
      const pki = await etcdPki(this.#directory);
      const etcdReady = this.#startEtcd(pki);
      this.#clusters = await Promise.all(this.#ports.clusters.map((_, at) => this.#cluster(at + 1, pki)));
      await etcdReady;
      await Promise.all(this.#clusters.map((cluster) => this.#startCluster(cluster)));
      await announceClusters(this.#directory, this.#clusters);
      return this.#plane();
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  #plane(): ControlPlane {
    const [first, ...others] = this.#clusters;
    if (!first) throw new Error('a control plane without a cluster');
    const stop = (): Promise<void> => (this.#stopping ??= this.#stop());
    return {
      dir: this.#directory.path,
      version: this.#binaries.version,
      binaries: this.#binaries,
      clusters: [first, ...others],
      startedInMs: Math.round(performance.now() - this.#startedAt),
      failed: this.#failed.promise,
      spawn: (guest) => this.#spawn(guest),
      stop,
      [Symbol.asyncDispose]: stop,
    };
  }

  async #startEtcd(pki: EtcdPki): Promise<void> {
    const child = this.#keeper.spawn({
      name: 'etcd',
      command: this.#binaries.paths.etcd,
      args: etcdFlags({
        dataDir: this.#directory.etcdData(),
        clientPort: this.#ports.etcdClient,
        peerPort: this.#ports.etcdPeer,
        pki,
        durable: this.#options.durable ?? true,
      }),
      logFile: this.#directory.log('etcd'),
    });
    this.#etcd = child;
    void childDied(child).then((error) => this.#childDied(error));
    await using connection = openConnection({
      server: `https://127.0.0.1:${this.#ports.etcdClient}`,
      ca: pki.caPem,
      clientCertificate: pki.client,
    });
    const client = new KubeClient(connection);
    await awaitReady(child, () => client.text('/health', { timeoutMs: 2_000 }), {
      timeoutMs: READY_TIMEOUT_MS,
      signal: this.#options.signal,
    });
    this.#started('etcd');
  }

  async #cluster(index: number, etcd: EtcdPki): Promise<Cluster> {
    const ports = this.#ports.clusters[index - 1];
    if (!ports) throw new Error(`no ports for cluster ${index}`);
    return new Cluster({
      index,
      directory: this.#directory,
      binaries: this.#binaries,
      keeper: this.#keeper,
      pki: await clusterPki(this.#directory, index, VIRTUAL_NODE_USER),
      etcd: { port: this.#ports.etcdClient, pki: etcd },
      ports,
      audit: this.#options.audit ?? false,
      onChildDied: (error) => this.#childDied(error),
    });
  }

  async #startCluster(cluster: Cluster): Promise<void> {
    const { controllerManager = true, virtualNode = true, signal } = this.#options;
    await cluster.startApiServer(signal);
    this.#started(`kube-apiserver of cluster ${cluster.index}`);
    await Promise.all([
      controllerManager &&
        cluster
          .startControllerManager(signal)
          .then(() => this.#started(`kube-controller-manager of cluster ${cluster.index}`)),
      virtualNode && this.#startNode(cluster),
    ]);
  }

  async #startNode(cluster: Cluster): Promise<void> {
    const node = await startClusterNode(cluster, {
      keeper: this.#keeper,
      dir: this.#directory.node(cluster.index),
      onError: (error) =>
        this.#options.report?.({ type: 'warning', message: `virtual node: ${String(error)}` }),
    });
    this.#nodes.push(node);
    this.#started(`virtual node of cluster ${cluster.index}`);
  }

  #spawn(guest: Guest): ManagedProcess {
    const child = this.#keeper.spawn({ ...guest, logFile: this.#directory.log(guest.name) });
    this.#guests.push(child);
    void childDied(child).then((error) => this.#childDied(error));
    return child;
  }

  async #stop(): Promise<void> {
    await this.#end();
    await releaseClaim(this.#directory);
    if (this.#options.ephemeral) await removeDirectory(this.#directory);
  }

  /** Clients first, servers after: each ends while what it talks to is still there. */
  async #end(): Promise<void> {
    this.#ending = true;
    await Promise.all(this.#guests.map((guest) => guest.stop({ graceMs: GUEST_STOP_GRACE_MS })));
    await Promise.all(this.#nodes.map((node) => node.stop()));
    await Promise.all(this.#clusters.map((cluster) => cluster.stop()));
    await this.#etcd?.stop({ graceMs: this.#options.ephemeral ? 0 : ETCD_STOP_GRACE_MS });
    await this.#keeper.close();
  }

  #childDied(error: ChildDiedError): void {
    if (!this.#ending) this.#failed.resolve(error);
  }

  #started(what: string): void {
    this.#options.report?.({ type: 'started', what, ms: Math.round(performance.now() - this.#startedAt) });
  }
}

/** The ports of the last start where they are free, so that kubeconfigs stay valid; new ones otherwise. */
async function withFreePorts<T>(
  directory: PlaneDirectory,
  clusters: number,
  start: (ports: Ports) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const kept = attempt === 1 ? await keptPorts(directory, clusters) : undefined;
    const ports = kept ?? toPorts(await freePorts(2 + 2 * clusters));
    await writePrivateFile(directory.ports(), JSON.stringify(ports));
    try {
      return await start(ports);
    } catch (error) {
      // Between our look and the program's bind, somebody else was faster.
      const taken = error instanceof ChildDiedError && error.message.includes('address already in use');
      if (!taken || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

function toPorts([etcdClient = 0, etcdPeer = 0, ...rest]: readonly number[]): Ports {
  const clusters = Array.from({ length: rest.length / 2 }, (_, at) => ({
    apiServer: rest[2 * at] ?? 0,
    controllerManager: rest[2 * at + 1] ?? 0,
  }));
  return { etcdClient, etcdPeer, clusters };
}

async function keptPorts(directory: PlaneDirectory, clusters: number): Promise<Ports | undefined> {
  const text = await readIfPresent(directory.ports());
  if (text === undefined) return undefined;
  const ports = JSON.parse(text) as Ports;
  const all = [
    ports.etcdClient,
    ports.etcdPeer,
    ...ports.clusters.flatMap(({ apiServer, controllerManager }) => [apiServer, controllerManager]),
  ];
  return ports.clusters.length === clusters && (await arePortsFree(all)) ? ports : undefined;
}

async function removeDirectory(directory: PlaneDirectory): Promise<void> {
  await rm(directory.path, { recursive: true, force: true, maxRetries: 3 });
}
