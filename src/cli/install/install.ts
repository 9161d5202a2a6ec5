/**
 * Puts the operator into a cluster, or brings an installation up to date. What
 * is as it should be is not written. What an earlier installation needed and
 * this one does not is deleted, above all rights; kinds and namespaces stay.
 */
import { awaitObject } from '../../kube/await-object.ts';
import { namespaces } from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import {
  objectKey,
  type KubeObject,
  type ResourceType,
  resourceName,
  type Stored,
} from '../../kube/resource-type.ts';
import { type CustomResourceDefinition, customResourceDefinitions } from '../../kube/schema/crd.ts';
import { UserError } from '../user-error.ts';
import { applyObject, type ApplyOptions, find, type Outcome, refOf } from './apply-object.ts';
import { crdManifests, type ManifestOptions, manifests } from './manifests.ts';
import { DEFAULT_NAMESPACE, OPERATOR, selectorOf } from './names.ts';
import { refuseHelmRelease } from './helm-release.ts';
import { describeObject, PART_TYPES, typeOf } from './object-types.ts';
import { awaitRollout } from './rollout.ts';

export interface InstallOptions extends ManifestOptions, ApplyOptions {
  /** Return when the operator runs. */
  readonly wait?: boolean;
  /** For the kinds to be established, and for the operator to run. */
  readonly timeoutMs?: number;
}

/** What happened, object by object, for people to read. */
export type Say = (line: string) => void;

export type Summary = Readonly<Record<Outcome | 'deleted', number>>;

const TIMEOUT_MS = 120_000;

export async function install(
  client: KubeClient,
  options: InstallOptions,
  say: Say = () => {},
): Promise<Summary> {
  const { namespace = DEFAULT_NAMESPACE, name = OPERATOR, wait = false, dryRun = false } = options;
  await refuseHelmRelease(client, name);
  await refuseMissingNamespaces(
    client,
    (options.namespaces ?? []).filter((served) => served !== namespace),
  );
  const objects = manifests(options);
  const existing = await find(client, namespaces, { name: namespace }, options.signal);

  const crds = await installCrds(client, options, say);
  const rest = await applyParts(client, objects.filter(isNoCrd), { ...options, existing, namespace }, say);
  const deleted = await prune(client, objects, { name, dryRun }, say);
  if (wait && !dryRun) await awaitRollout(client, { name, namespace }, { timeoutMs: TIMEOUT_MS, ...options });
  return { ...count([...crds, ...rest]), deleted };
}

/** The kinds alone. Resolves when the API server serves them. */
export async function installCrds(
  client: KubeClient,
  options: Pick<InstallOptions, 'systems' | 'name' | 'timeoutMs'> & ApplyOptions,
  say: Say = () => {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const crds = crdManifests(options);
  for (const crd of crds) {
    const { outcome } = await applyObject(client, crd, options);
    outcomes.push(outcome);
    say(line(crd, outcome, options));
  }
  if (!options.dryRun) await Promise.all(crds.map((crd) => awaitEstablished(client, crd, options)));
  return outcomes;
}

interface PartsOptions extends ApplyOptions {
  readonly namespace: string;
  /** The operator's namespace, if it was there before. */
  readonly existing: Stored | undefined;
}

async function applyParts(
  client: KubeClient,
  objects: readonly KubeObject[],
  options: PartsOptions,
  say: Say,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const object of objects) {
    const { outcome, remark } = await applyPart(client, object, options);
    outcomes.push(outcome);
    say(line(object, outcome, options, remark));
  }
  return outcomes;
}

async function applyPart(
  client: KubeClient,
  object: KubeObject,
  options: PartsOptions,
): Promise<{ outcome: Outcome; remark?: string }> {
  const { existing, namespace, dryRun } = options;
  if (object.kind === 'Namespace' && existing && !isOurs(existing))
    return { outcome: 'unchanged', remark: 'it was there before and is left as it is' };
  if (dryRun && !existing && object.metadata?.namespace === namespace)
    return { outcome: 'created', remark: `not checked by the server: it has no namespace ${namespace} yet` };
  return applyObject(client, object, options);
}

async function prune(
  client: KubeClient,
  wanted: readonly KubeObject[],
  { name, dryRun }: { name: string; dryRun: boolean },
  say: Say,
): Promise<number> {
  const keys = new Set(wanted.map((object) => keyOf(typeOf(object), object)));
  let deleted = 0;
  for (const type of PART_TYPES.toReversed())
    for await (const object of client.listAll(type, { labelSelector: selectorOf(name) })) {
      if (keys.has(keyOf(type, object))) continue;
      await client.delete(type, refOf(object), { preconditions: { uid: object.metadata.uid }, dryRun });
      say(line(object, 'deleted', { dryRun }, 'no longer needed'));
      deleted++;
    }
  return deleted;
}

async function awaitEstablished(
  client: KubeClient,
  crd: CustomResourceDefinition,
  { timeoutMs = TIMEOUT_MS, signal }: { timeoutMs?: number; signal?: AbortSignal },
): Promise<void> {
  const condition = (object: CustomResourceDefinition, type: string) =>
    object.status?.conditions?.find((each) => each.type === type);
  const stored = await awaitObject(
    client,
    customResourceDefinitions,
    refOf(crd),
    (object) =>
      condition(object, 'Established')?.status === 'True' ||
      condition(object, 'NamesAccepted')?.status === 'False',
    { timeoutMs, until: 'to be established', ...(signal && { signal }) },
  );
  const names = condition(stored, 'NamesAccepted');
  if (names?.status === 'False')
    throw new UserError(`${crd.metadata?.name}: another kind has its names already: ${names.message ?? ''}`);
}

async function refuseMissingNamespaces(client: KubeClient, names: readonly string[]): Promise<void> {
  const found = await Promise.all(names.map((name) => find(client, namespaces, { name })));
  const missing = names.filter((_, index) => !found[index]);
  if (missing.length === 0) return;
  const commands = missing.map((name) => `\n  kubectl create namespace ${name}`).join('');
  throw new UserError(`the operator is to serve namespaces that do not exist; make them first:${commands}`);
}

function isOurs({ metadata }: Stored): boolean {
  return metadata.labels?.['app.kubernetes.io/part-of'] === OPERATOR;
}

function isNoCrd({ kind }: KubeObject): boolean {
  return kind !== customResourceDefinitions.kind;
}

function keyOf(type: ResourceType, { metadata }: KubeObject): string {
  return `${resourceName(type)} ${objectKey(metadata ?? {})}`;
}

function line(
  object: KubeObject,
  outcome: Outcome | 'deleted',
  { dryRun = false }: { dryRun?: boolean },
  remark?: string,
): string {
  const notes = [...(dryRun ? ['dry run'] : []), ...(remark === undefined ? [] : [remark])];
  const note = notes.length === 0 ? '' : ` (${notes.join('; ')})`;
  return `${describeObject(typeOf(object), object)} ${outcome}${note}`;
}

function count(outcomes: readonly Outcome[]): Record<Outcome, number> {
  const of = (wanted: Outcome): number => outcomes.filter((outcome) => outcome === wanted).length;
  return { created: of('created'), configured: of('configured'), unchanged: of('unchanged') };
}
