/**
 * Operators with the errand kind behind proxies of their own, the journal that
 * its tasks write, and every version of every status, to be judged together.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { namespaces } from '../../src/kube/builtin-resources.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import type { Stored } from '../../src/kube/resource-type.ts';
import type { Cluster } from '../../src/local-cluster/cluster.ts';
import { type ControlPlane, startControlPlane } from '../../src/local-cluster/control-plane.ts';
import { kubeconfigYaml } from '../../src/local-cluster/kubeconfig.ts';
import errands, { type Errand, errand } from '../fixtures/journal/errand.ts';
import { Journal } from '../fixtures/journal/journal.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { installOperator, type OperatorAccess } from '../support/install-operator.ts';
import { OperatorProcess } from '../support/operator.ts';
import { type TemporaryDirectory, temporaryDirectory } from '../support/temporary-directory.ts';

const PLUGIN = join(import.meta.dirname, '../fixtures/journal/errand.ts');
const ACCOUNT = 'taskflow-operator';

type Settings = Readonly<Record<string, string | number | boolean>>;

/** A leader that is killed leaves its lease behind: without election nobody waits for its end. */
const ALONE: Settings = { 'leaderElection.enabled': false };

export class EngineStage implements AsyncDisposable {
  readonly #dir: TemporaryDirectory;
  readonly #plane: ControlPlane;
  readonly #access: OperatorAccess;
  #scenes = 0;

  private constructor(dir: TemporaryDirectory, plane: ControlPlane, access: OperatorAccess) {
    this.#dir = dir;
    this.#plane = plane;
    this.#access = access;
  }

  static async open(): Promise<EngineStage> {
    const dir = await temporaryDirectory();
    const plane = await startControlPlane({
      dir: join(dir.path, 'plane'),
      durable: false,
      virtualNode: false,
    });
    const access = await installOperator(plane.clusters[0], [{ name: 'errands', kinds: [errands] }]);
    return new EngineStage(dir, plane, access);
  }

  get cluster(): Cluster {
    return this.#plane.clusters[0];
  }

  /** A namespace with a journal of its own; operators of a scene see nothing else. */
  async scene(): Promise<Scene> {
    const namespace = `scene-${++this.#scenes}`;
    await this.cluster.admin.create(namespaces, { metadata: { name: namespace } });
    const journal = new Journal(join(this.#dir.path, `${namespace}.jsonl`));
    return new Scene({
      cluster: this.cluster,
      access: this.#access,
      namespace,
      journal,
      dir: this.#dir.path,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#plane.stop();
    await this.#dir[Symbol.asyncDispose]();
  }
}

interface SceneParts {
  readonly cluster: Cluster;
  readonly access: OperatorAccess;
  readonly namespace: string;
  readonly journal: Journal;
  readonly dir: string;
}

/** An operator process, and the proxy that its calls go through. */
export interface Actor {
  readonly operator: OperatorProcess;
  readonly proxy: FaultProxy;
}

export class Scene implements AsyncDisposable {
  readonly #parts: SceneParts;
  readonly #opened = new AsyncDisposableStack();
  readonly #actors: OperatorProcess[] = [];
  /** Every version of every errand, in the order of the server. */
  readonly versions: Stored<Errand>[] = [];

  constructor(parts: SceneParts) {
    this.#parts = parts;
    const reflector = new Reflector<Errand>({
      client: this.admin,
      type: errand,
      namespace: parts.namespace,
      onChange: ({ type, object }) => type !== 'deleted' && this.versions.push(object),
    }).start();
    this.#opened.defer(() => reflector.stop());
  }

  get admin(): KubeClient {
    return this.#parts.cluster.admin;
  }

  get namespace(): string {
    return this.#parts.namespace;
  }

  get journal(): Journal {
    return this.#parts.journal;
  }

  async proxy(): Promise<FaultProxy> {
    const proxy = await startFaultProxy({ target: this.#parts.cluster });
    this.#opened.use(proxy);
    return proxy;
  }

  /** Starts an operator; returns without waiting for it to run. */
  async start(proxy: FaultProxy, settings: Settings = ALONE): Promise<OperatorProcess> {
    const { access, namespace } = this.#parts;
    const operator = new OperatorProcess({
      kubeconfig: await this.#kubeconfig(proxy),
      namespace: access.namespace,
      plugin: PLUGIN,
      settings: {
        namespaces: namespace,
        // So that many objects can be held at once.
        'controller.maxConcurrentReconciles': 64,
        ...settings,
      },
    });
    this.#actors.push(operator);
    return operator;
  }

  async startAndWait(proxy: FaultProxy, settings?: Settings): Promise<OperatorProcess> {
    const operator = await this.start(proxy, settings);
    await operator.untilLogged('operator runs');
    return operator;
  }

  /** Kill -9; in the journal only when it is certain that the process writes nothing more. */
  async kill(operator: OperatorProcess): Promise<void> {
    operator.signal('SIGKILL');
    await operator.finished;
    this.journal.append({ phase: 'gone', pid: operator.pid });
  }

  async create(name: string, spec: Partial<Errand['spec']> = {}): Promise<Stored<Errand>> {
    return this.admin.create(errand, {
      metadata: { name, namespace: this.namespace },
      spec: { ...spec, journal: this.journal.path },
    } as Errand);
  }

  /** The newest version of each errand. */
  get newest(): Map<string, Stored<Errand>> {
    return new Map(this.versions.map((version) => [version.metadata.name, version]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#actors.map((operator) => operator[Symbol.asyncDispose]()));
    await this.#opened.disposeAsync();
  }

  async #kubeconfig({ server, ca }: FaultProxy): Promise<string> {
    const { cluster, access, dir, namespace } = this.#parts;
    const account = { namespace: access.namespace, name: ACCOUNT };
    const { token = '' } = await cluster.serviceAccountConnection(account);
    const path = join(dir, `${namespace}-${new URL(server).port}.kubeconfig`);
    const connection = { server, ca, token };
    await writeFile(path, kubeconfigYaml({ cluster: cluster.name, user: ACCOUNT, connection }));
    return path;
  }
}
