/**
 * Takes the operator out of a cluster, in the reverse order of its
 * installation. The kinds and their objects stay unless asked otherwise. What
 * is to go is found by its labels, so that it does not matter with which
 * options or by which version it was installed, or how far an earlier
 * uninstallation came.
 */
import { awaitDeletion } from '../../kube/await-object.ts';
import { leases, namespaces, secrets, serviceAccounts } from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import { NotFound } from '../../kube/errors.ts';
import type { KubeObject, ResourceType, Stored } from '../../kube/resource-type.ts';
import { type CustomResourceDefinition, customResourceDefinitions } from '../../kube/schema/crd.ts';
import { mutatingConfigurations, validatingConfigurations } from '../../webhooks/configuration.ts';
import { UserError } from '../user-error.ts';
import { find, refOf } from './apply-object.ts';
import {
  type CustomObject,
  customObjects,
  describeCustomObject,
  foreignToServer,
  installedCrds,
} from './custom-objects.ts';
import { refuseHelmRelease } from './helm-release.ts';
import { foreignContent } from './namespace-content.ts';
import { DEFAULT_NAMESPACE, OPERATOR, selectorOf, webhookName } from './names.ts';
import { deployments, describeObject, PART_TYPES } from './object-types.ts';

export interface UninstallOptions {
  readonly name?: string;
  /** Of the operator, should nothing tell any more where it was. */
  readonly namespace?: string;
  /** The kinds too, and with them all their objects. */
  readonly deleteCrds?: boolean;
  /** Also while there are objects that only the operator can finish. */
  readonly force?: boolean;
  /** For each object to be gone. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const TIMEOUT_MS = 120_000;
const SHOWN = 20;

/** How many objects were deleted. */
export async function uninstall(
  client: KubeClient,
  options: UninstallOptions,
  say: (line: string) => void = () => {},
): Promise<number> {
  const name = options.name ?? OPERATOR;
  await refuseHelmRelease(client, name);
  const crds = await installedCrds(client, name);
  const objects = await customObjects(client, crds);
  const unfinished = objects.filter(({ finalizers }) => foreignToServer(finalizers).length > 0);
  if (unfinished.length > 0 && !options.force) throw stillNeeded(unfinished, options);
  if (unfinished.length > 0) say(whatIsLost(unfinished, options));

  const removal = new Removal(client, options, say);
  const places = await removal.places(name);
  await removal.parts(name, places);
  if (options.deleteCrds) await removal.crds(crds);
  for (const place of places) await removal.namespace(place);
  if (!options.deleteCrds && crds.length > 0)
    say(`${crds.length} kinds stay, with ${objects.length} objects; --delete-crds deletes them, too`);
  return removal.deleted;
}

class Removal {
  readonly #client: KubeClient;
  readonly #options: UninstallOptions;
  readonly #say: (line: string) => void;
  deleted = 0;

  constructor(client: KubeClient, options: UninstallOptions, say: (line: string) => void) {
    this.#client = client;
    this.#options = options;
    this.#say = say;
  }

  async parts(name: string, places: readonly string[]): Promise<void> {
    // Deployment first: as long as the operator runs, it puts back what is its own.
    for (const type of PART_TYPES.toReversed()) {
      const found: Stored[] = [];
      const labelSelector = selectorOf(name);
      for await (const object of this.#client.listAll(type, { labelSelector })) found.push(object);
      await Promise.all(found.map((object) => this.#delete(type, object)));
    }
    await this.#madeByOperator(name, places);
  }

  async crds(crds: readonly Stored<CustomResourceDefinition>[]): Promise<void> {
    // Read anew: the operator may have added a finalizer before it ended.
    const objects = await customObjects(this.#client, crds);
    // Nobody is left to finish what the objects wait for, and the kind waits for its objects.
    if (this.#options.force) for (const object of objects) await this.#releaseFinalizers(object);
    await Promise.all(
      crds.map((crd) => {
        const { names, group } = crd.spec;
        const lost = objects.filter(({ type }) => type.kind === names.kind && type.group === group);
        return this.#delete(customResourceDefinitions, crd, `with ${lost.length} objects`);
      }),
    );
  }

  /** Namespaces that the operator is or was in. */
  async places(name: string): Promise<string[]> {
    const labelSelector = selectorOf(name);
    const { items: accounts } = await this.#client.list(serviceAccounts, { labelSelector });
    const { items: own } = await this.#client.list(namespaces, { labelSelector });
    return [
      ...new Set([
        this.#options.namespace ?? DEFAULT_NAMESPACE,
        ...accounts.flatMap(({ metadata }) => metadata.namespace ?? []),
        ...own.map(({ metadata }) => metadata.name),
      ]),
    ];
  }

  async #madeByOperator(name: string, places: readonly string[]): Promise<void> {
    const made: readonly (readonly [ResourceType, KubeObject])[] = [
      ...[mutatingConfigurations, validatingConfigurations].map(
        (type) => [type, { metadata: { name } }] as const,
      ),
      ...places.flatMap((namespace) => [
        [secrets, { metadata: { namespace, name: webhookName(name) } }] as const,
        [leases, { metadata: { namespace, name } }] as const,
      ]),
    ];
    for (const [type, object] of made) {
      const found = await find(this.#client, type, refOf(object), this.#options.signal);
      if (found) await this.#delete(type, found);
    }
  }

  async namespace(name: string): Promise<void> {
    const found = await find(this.#client, namespaces, { name }, this.#options.signal);
    if (found?.metadata.labels?.['app.kubernetes.io/part-of'] !== OPERATOR) return;
    const foreign = await foreignContent(this.#client, name);
    if (foreign.length === 0) return this.#delete(namespaces, found);
    this.#say(`namespace/${name} stays: there are things of others in it, such as ${foreign.join(', ')}`);
  }

  async #delete(type: ResourceType, object: Stored, remark?: string): Promise<void> {
    const { timeoutMs = TIMEOUT_MS, signal } = this.#options;
    const ref = refOf(object);
    try {
      await this.#client.delete(type, ref, {
        preconditions: { uid: object.metadata.uid },
        // A Deployment is gone when its Pods are; the rest has nothing to wait for.
        propagationPolicy: type === deployments ? 'Foreground' : 'Background',
        ...(signal && { signal }),
      });
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
    }
    await awaitDeletion(this.#client, type, ref, { timeoutMs, ...(signal && { signal }) });
    this.deleted++;
    this.#say(`${describeObject(type, object)} deleted${remark === undefined ? '' : ` (${remark})`}`);
  }

  async #releaseFinalizers({ type, name, namespace, finalizers }: CustomObject): Promise<void> {
    const ours = foreignToServer(finalizers);
    if (ours.length === 0) return;
    const kept = finalizers.filter((finalizer) => !ours.includes(finalizer));
    try {
      const body = { metadata: { finalizers: kept } };
      await this.#client.patch(type, { name, namespace }, { kind: 'merge', body });
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
    }
  }
}

function stillNeeded(unfinished: readonly CustomObject[], { deleteCrds }: UninstallOptions): UserError {
  const kinds = new Set(unfinished.map(({ type }) => `${type.plural}.${type.group}`));
  return new UserError(
    [
      `the operator is still needed: ${unfinished.length} objects have finalizers that only it removes`,
      ...listed(unfinished),
      'Delete them while it runs, and wait for their end:',
      ...[...kinds].map((kind) => `  kubectl delete ${kind} --all --all-namespaces`),
      deleteCrds
        ? 'With --force they are deleted as they are, and what they have made elsewhere is left there.'
        : 'With --force the operator goes all the same. They stay, nobody works on them, and they cannot be ' +
          'deleted until it is installed again.',
    ].join('\n'),
  );
}

function whatIsLost(unfinished: readonly CustomObject[], { deleteCrds }: UninstallOptions): string {
  return [
    deleteCrds
      ? `deleted without the operator's work, so that what they have made elsewhere is left there:`
      : `left without an operator; they cannot be deleted until it is installed again:`,
    ...listed(unfinished),
  ].join('\n');
}

function listed(objects: readonly CustomObject[]): string[] {
  const shown = objects
    .slice(0, SHOWN)
    .map((object) => `  ${describeCustomObject(object)} (${foreignToServer(object.finalizers).join(', ')})`);
  const more = objects.length - SHOWN;
  return more > 0 ? [...shown, `  and ${more} more`] : shown;
}
