/**
 * One cluster of the local control plane: its API server, its controller
 * manager, and the ways into it.
 */
import type { KubeBinaries } from './binaries/find-binaries.ts';
import { awaitReady, childDied, type ChildDiedError } from './child-watch.ts';
import { awaitObject } from '../kube/await-object.ts';
import { serviceAccounts } from '../kube/builtin-resources.ts';
import type { KeyPair } from '../kube/certificates.ts';
import { KubeClient } from '../kube/client.ts';
import { type Connection, type ConnectionOptions, openConnection } from '../kube/connection.ts';
import type { KubeObject, ObjectRef } from '../kube/resource-type.ts';
import { kubeconfigYaml } from './kubeconfig.ts';
import type { ClusterPki, EtcdPki } from './pki.ts';
import { type PlaneDirectory, writePrivateFile } from './plane-directory.ts';
import { apiServerFlags, controllerManagerFlags } from './program-flags.ts';
import type { ManagedProcess } from './processes/managed-process.ts';
import type { ProcessKeeper } from './processes/process-keeper.ts';

export interface ClusterParts {
  readonly index: number;
  readonly directory: PlaneDirectory;
  readonly binaries: KubeBinaries;
  readonly keeper: ProcessKeeper;
  readonly pki: ClusterPki;
  readonly etcd: { readonly port: number; readonly pki: EtcdPki };
  readonly ports: { readonly apiServer: number; readonly controllerManager: number };
  readonly audit: boolean;
  readonly onChildDied: (error: ChildDiedError) => void;
}

const READY_TIMEOUT_MS = 60_000;
const AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`;

export class Cluster {
  readonly name: string;
  readonly index: number;
  readonly server: string;
  readonly ca: string;
  /** Path of the admin's kubeconfig. */
  readonly kubeconfig: string;
  /** A client with the admin's rights. */
  readonly admin: KubeClient;
  readonly #parts: ClusterParts;
  readonly #connections: Connection[] = [];
  readonly #expectedExits = new WeakSet<ManagedProcess>();
  #apiServer: ManagedProcess | undefined;
  #controllerManager: ManagedProcess | undefined;

  constructor(parts: ClusterParts) {
    this.#parts = parts;
    this.index = parts.index;
    this.name = `taskflow-${parts.index}`;
    this.server = `https://127.0.0.1:${parts.ports.apiServer}`;
    this.ca = parts.pki.authority.certPem;
    this.kubeconfig = parts.directory.kubeconfig(parts.index);
    this.admin = this.clientFor(this.connectionOf(parts.pki.admin));
  }

  get adminKeys(): KeyPair {
    const { certPem, keyPem } = this.#parts.pki.admin;
    return { certPem, keyPem };
  }

  /** Keys of the virtual node: as a server of logs, and as a client of the API. */
  get nodeKeys(): Pick<ClusterPki, 'nodeServer' | 'virtualNode'> {
    return this.#parts.pki;
  }

  async startApiServer(signal?: AbortSignal): Promise<void> {
    const { index, directory, etcd, pki, ports } = this.#parts;
    await this.#writeKubeconfig(this.kubeconfig, 'admin', this.connectionOf(pki.admin));
    this.#apiServer = this.#spawn(
      'kube-apiserver',
      apiServerFlags({
        index,
        port: ports.apiServer,
        etcdPort: etcd.port,
        etcd: etcd.pki,
        pki,
        auditLog: this.#parts.audit ? await this.#auditLog() : undefined,
      }),
      directory.log(`kube-apiserver-${index}`),
    );
    await awaitReady(this.#apiServer, () => this.admin.text('/readyz', { timeoutMs: 2_000 }), {
      timeoutMs: READY_TIMEOUT_MS,
      signal,
    });
  }

  /** Ready when it has made what every namespace needs before a Pod can be created in it. */
  async startControllerManager(signal?: AbortSignal): Promise<void> {
    const { index, directory, pki, ports } = this.#parts;
    const kubeconfig = directory.userKubeconfig(index, 'kube-controller-manager');
    await this.#writeKubeconfig(
      kubeconfig,
      'kube-controller-manager',
      this.connectionOf(pki.controllerManager),
    );
    const child = this.#spawn(
      'kube-controller-manager',
      controllerManagerFlags({ port: ports.controllerManager, kubeconfig, pki }),
      directory.log(`kube-controller-manager-${index}`),
    );
    this.#controllerManager = child;
    const ready = awaitObject(
      this.admin,
      serviceAccounts,
      { namespace: 'default', name: 'default' },
      () => true,
      { timeoutMs: READY_TIMEOUT_MS, until: 'to be made', ...(signal && { signal }) },
    );
    await using connection = openConnection({
      server: `https://127.0.0.1:${ports.controllerManager}`,
      ca: this.ca,
    });
    const health = new KubeClient(connection);
    await Promise.all([
      awaitReady(child, () => health.text('/healthz', { timeoutMs: 2_000 }), {
        timeoutMs: READY_TIMEOUT_MS,
        signal,
      }),
      Promise.race([ready, childDied(child).then((error) => Promise.reject(error))]),
    ]);
  }

  /** As a crash of the API server: killed at once, then started again on the same address. */
  async restartApiServer(): Promise<void> {
    await this.killApiServer();
    await this.startApiServer();
  }

  /** Its state is etcd's; on SIGTERM it would linger for as long as a client watches. */
  async killApiServer(): Promise<void> {
    await this.#end(this.#apiServer, 0);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
    // No lease to release and no state of its own: nothing is gained by asking it nicely.
    await this.#end(this.#controllerManager, 0);
    await this.killApiServer();
  }

  connectionOf(pair: KeyPair): ConnectionOptions {
    return { server: this.server, ca: this.ca, clientCertificate: pair };
  }

  /** A client that is closed together with the cluster. */
  clientFor(options: ConnectionOptions): KubeClient {
    const connection = openConnection(options);
    this.#connections.push(connection);
    return new KubeClient(connection);
  }

  /** How a user with these groups reaches the cluster: a fresh client certificate. */
  async userConnection(user: string, groups: readonly string[] = []): Promise<ConnectionOptions> {
    return this.connectionOf(
      await this.#parts.pki.authority.issue({ commonName: user, organizations: groups, usages: ['client'] }),
    );
  }

  /** Path of a kubeconfig for such a user. */
  async userKubeconfig(user: string, groups: readonly string[] = []): Promise<string> {
    const path = this.#parts.directory.userKubeconfig(this.index, user);
    await this.#writeKubeconfig(path, user, await this.userConnection(user, groups));
    return path;
  }

  /** How an existing ServiceAccount reaches the cluster: a token of the TokenRequest API. */
  async serviceAccountConnection(account: ObjectRef, expirationSeconds = 3600): Promise<ConnectionOptions> {
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds },
    };
    const answer = await this.admin.createSub<KubeObject, { status: { token: string } }>(
      serviceAccounts,
      request,
      { ref: account, subresource: 'token' },
    );
    return { server: this.server, ca: this.ca, token: answer.status.token };
  }

  async serviceAccountKubeconfig(account: ObjectRef, expirationSeconds?: number): Promise<string> {
    const user = `${account.namespace}.${account.name}`;
    const path = this.#parts.directory.userKubeconfig(this.index, user);
    const connection = await this.serviceAccountConnection(account, expirationSeconds);
    await this.#writeKubeconfig(path, user, connection);
    return path;
  }

  #spawn(
    program: 'kube-apiserver' | 'kube-controller-manager',
    args: string[],
    logFile: string,
  ): ManagedProcess {
    const child = this.#parts.keeper.spawn({
      name: program,
      command: this.#parts.binaries.paths[program],
      args,
      logFile,
    });
    void childDied(child).then((error) => this.#expectedExits.has(child) || this.#parts.onChildDied(error));
    return child;
  }

  async #end(child: ManagedProcess | undefined, graceMs: number): Promise<void> {
    if (!child) return;
    this.#expectedExits.add(child);
    await child.stop({ graceMs });
  }

  async #writeKubeconfig(path: string, user: string, connection: ConnectionOptions): Promise<void> {
    await writePrivateFile(path, kubeconfigYaml({ cluster: this.name, user, connection }));
  }

  async #auditLog(): Promise<{ policyFile: string; logFile: string }> {
    const { directory, index } = this.#parts;
    const policyFile = directory.pki(`cluster-${index}`, 'audit-policy.yaml');
    await writePrivateFile(policyFile, AUDIT_POLICY);
    return { policyFile, logFile: directory.log(`audit-${index}`) };
  }
}
