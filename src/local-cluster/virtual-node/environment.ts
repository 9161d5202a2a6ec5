/** The environment and command line of a container by the rules of Kubernetes. Pure. */
import { configMaps, secrets } from '../../kube/builtin-resources.ts';
import type { ConfigMap, Secret } from '../../kube/builtin-resources.ts';
import { fieldValue, type NodeCapacity, type PodAddressFacts, resourceValue } from './downward-api.ts';
import { AwaitsObject } from './object-references.ts';
import type { Container, StoredPod } from './pod-spec.ts';

export interface EnvironmentSources {
  readonly pod: StoredPod;
  readonly addresses: PodAddressFacts;
  readonly node: NodeCapacity;
  /** By name; undefined where the object does not exist. */
  readonly configMaps: ReadonlyMap<string, ConfigMap | undefined>;
  readonly secrets: ReadonlyMap<string, Secret | undefined>;
}

type Source = NonNullable<NonNullable<Container['env']>[number]['valueFrom']>;
export type Environment = Record<string, string>;

/** Names of the objects that the environment of a container is made from. */
export function environmentReferences(container: Container): {
  configMaps: Set<string>;
  secrets: Set<string>;
} {
  const found = { configMaps: new Set<string>(), secrets: new Set<string>() };
  const add = (set: Set<string>, name: string | undefined): void => {
    if (name !== undefined && name !== '') set.add(name);
  };
  for (const { configMapRef, secretRef } of container.envFrom ?? []) {
    add(found.configMaps, configMapRef?.name);
    add(found.secrets, secretRef?.name);
  }
  for (const { valueFrom } of container.env ?? []) {
    add(found.configMaps, valueFrom?.configMapKeyRef?.name);
    add(found.secrets, valueFrom?.secretKeyRef?.name);
  }
  return found;
}

/** Later definitions win over earlier ones, and over `base`; values may refer to what was defined before. */
export function buildEnvironment(
  container: Container,
  base: Environment,
  sources: EnvironmentSources,
): Environment {
  const result: Environment = { ...base };
  for (const from of container.envFrom ?? [])
    for (const [key, value] of Object.entries(wholeObject(from, sources)))
      if (key !== '' && !key.includes('=')) result[`${from.prefix ?? ''}${key}`] = value;
  for (const { name, value, valueFrom } of container.env ?? []) {
    const resolved = valueFrom ? sourced(container, valueFrom, sources) : expand(value ?? '', result);
    if (resolved !== undefined) result[name] = resolved;
  }
  return result;
}

export function commandLine(container: Container, environment: Environment): string[] {
  return [...(container.command ?? []), ...(container.args ?? [])].map((word) => expand(word, environment));
}

/** `$(NAME)` becomes the value, `$$` a dollar sign; unknown names stay as they are written. */
export function expand(text: string, environment: Environment): string {
  return text.replace(/\$(?:\$|\(([^)]*)\))/g, (whole, name: string | undefined) =>
    name === undefined ? '$' : (environment[name] ?? whole),
  );
}

function wholeObject(
  { configMapRef, secretRef }: NonNullable<Container['envFrom']>[number],
  sources: EnvironmentSources,
): Record<string, string> {
  if (configMapRef) return configMapNamed(configMapRef, sources)?.data ?? {};
  if (secretRef) return decoded(secretNamed(secretRef, sources));
  return {};
}

function sourced(container: Container, source: Source, sources: EnvironmentSources): string | undefined {
  const { configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef } = source;
  const { pod, addresses, node } = sources;
  if (configMapKeyRef)
    return keyOf(configMapKeyRef, 'ConfigMap', pod, configMapNamed(configMapKeyRef, sources)?.data);
  if (secretKeyRef) return keyOf(secretKeyRef, 'Secret', pod, decoded(secretNamed(secretKeyRef, sources)));
  if (fieldRef) return fieldValue(pod, fieldRef.fieldPath, addresses);
  if (resourceFieldRef) {
    const { containerName } = resourceFieldRef;
    const of = pod.spec?.containers.find(({ name }) => name === containerName) ?? container;
    return resourceValue(of, resourceFieldRef, node);
  }
  throw new Error(`source ${Object.keys(source).join(', ')} of an environment variable is not supported`);
}

interface Selector {
  readonly name?: string;
  readonly optional?: boolean;
}

function configMapNamed(
  { name = '', optional }: Selector,
  { configMaps: known, pod }: EnvironmentSources,
): ConfigMap | undefined {
  const object = known.get(name);
  if (!object && !optional)
    throw new AwaitsObject(`configmap "${name}" not found`, configMaps, {
      name,
      namespace: pod.metadata.namespace,
    });
  return object;
}

function secretNamed(
  { name = '', optional }: Selector,
  { secrets: known, pod }: EnvironmentSources,
): Secret | undefined {
  const object = known.get(name);
  if (!object && !optional)
    throw new AwaitsObject(`secret "${name}" not found`, secrets, {
      name,
      namespace: pod.metadata.namespace,
    });
  return object;
}

function keyOf(
  { name = '', key, optional }: Selector & { readonly key: string },
  kind: 'ConfigMap' | 'Secret',
  { metadata: { namespace } }: StoredPod,
  data: Readonly<Record<string, string>> = {},
): string | undefined {
  const value = data[key];
  if (value === undefined && !optional)
    throw new AwaitsObject(
      `couldn't find key ${key} in ${kind} ${namespace}/${name}`,
      kind === 'Secret' ? secrets : configMaps,
      { name, namespace },
    );
  return value;
}

function decoded(secret: Secret | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(secret?.data ?? {}).map(([key, value]) => [
      key,
      Buffer.from(value, 'base64').toString('utf8'),
    ]),
  );
}
