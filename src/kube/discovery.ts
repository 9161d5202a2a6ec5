/** What an API server offers. */
import type { CallOptions, KubeClient } from './client.ts';
import { NotFound } from './errors.ts';
import { defineResource, type KubeObject, type ResourceType } from './resource-type.ts';

export interface ApiResource {
  readonly type: ResourceType;
  /** Whether its version is the group's preferred one. */
  readonly preferred: boolean;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  /** `status`, `scale`, … */
  readonly subresources: readonly string[];
}

/** The parts of the server's answers that are read. */
interface AggregatedGroups {
  readonly kind: 'APIGroupDiscoveryList';
  readonly items: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions: readonly {
      readonly version: string;
      readonly resources?: readonly AggregatedResource[];
    }[];
  }[];
}
interface AggregatedResource {
  readonly resource: string;
  readonly responseKind?: { readonly kind: string };
  readonly scope: string;
  readonly singularResource?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly verbs: readonly string[];
  readonly subresources?: readonly { readonly subresource: string }[];
}
interface GroupList {
  readonly kind: 'APIGroupList';
  readonly groups: readonly {
    readonly versions: readonly { readonly groupVersion: string }[];
    readonly preferredVersion?: { readonly groupVersion: string };
  }[];
}
interface VersionList {
  readonly kind: 'APIVersions';
  readonly versions: readonly string[];
}
interface ResourceList {
  readonly resources: readonly {
    readonly name: string;
    readonly kind: string;
    readonly namespaced: boolean;
    readonly singularName?: string;
    readonly shortNames?: readonly string[];
    readonly categories?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/** All groups in one answer, since Kubernetes 1.30; the plain form for older servers. */
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';

export async function discover(client: KubeClient, options: CallOptions = {}): Promise<ApiResource[]> {
  const roots = ['/api', '/apis'] as const;
  const resources = await Promise.all(roots.map((root) => discoverBelow(client, root, options)));
  return resources.flat();
}

async function discoverBelow(
  client: KubeClient,
  root: '/api' | '/apis',
  options: CallOptions,
): Promise<ApiResource[]> {
  const answer = await client.json<AggregatedGroups | GroupList | VersionList>(root, {
    ...options,
    accept: AGGREGATED,
  });
  switch (answer.kind) {
    case 'APIGroupDiscoveryList':
      return aggregated(answer);
    case 'APIVersions':
      return plain(
        client,
        answer.versions.map((version) => [version, true] as const),
        options,
      );
    case 'APIGroupList':
      return plain(
        client,
        answer.groups.flatMap(({ versions, preferredVersion }) =>
          versions.map(
            ({ groupVersion }) => [groupVersion, groupVersion === preferredVersion?.groupVersion] as const,
          ),
        ),
        options,
      );
  }
}

function aggregated({ items }: AggregatedGroups): ApiResource[] {
  return items.flatMap(({ metadata, versions }) =>
    versions.flatMap(({ version, resources = [] }, at) =>
      resources.map((resource) => ({
        type: defineResource(
          metadata?.name ? `${metadata.name}/${version}` : version,
          resource.responseKind?.kind ?? '',
          resource.resource,
          resource.scope === 'Namespaced' ? 'Namespaced' : 'Cluster',
        ),
        preferred: at === 0,
        singular: resource.singularResource ?? '',
        shortNames: resource.shortNames ?? [],
        categories: resource.categories ?? [],
        verbs: resource.verbs,
        subresources: (resource.subresources ?? []).map(({ subresource }) => subresource),
      })),
    ),
  );
}

async function plain(
  client: KubeClient,
  versions: readonly (readonly [apiVersion: string, preferred: boolean])[],
  options: CallOptions,
): Promise<ApiResource[]> {
  const lists = await Promise.all(
    versions.map(async ([apiVersion, preferred]) =>
      resourcesOf(apiVersion, preferred, await client.json<ResourceList>(versionPath(apiVersion), options)),
    ),
  );
  return lists.flat();
}

function resourcesOf(apiVersion: string, preferred: boolean, { resources }: ResourceList): ApiResource[] {
  const below = (name: string): string[] =>
    resources
      .filter((other) => other.name.startsWith(`${name}/`))
      .map((other) => other.name.slice(name.length + 1));
  return resources
    .filter(({ name }) => !name.includes('/'))
    .map(({ name, kind, namespaced, singularName = '', shortNames = [], categories = [], verbs }) => ({
      type: defineResource(apiVersion, kind, name, namespaced ? 'Namespaced' : 'Cluster'),
      preferred,
      singular: singularName,
      shortNames,
      categories,
      verbs,
      subresources: below(name),
    }));
}

function versionPath(apiVersion: string): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}

/** Remembers the kinds it has met; one that is unknown is asked for again, as CRDs come later. */
export class Discovery {
  readonly #client: KubeClient;
  readonly #known = new Map<string, ResourceType>();

  constructor(client: KubeClient) {
    this.#client = client;
  }

  async resourceFor<T extends KubeObject>(
    apiVersion: string,
    kind: string,
    options: CallOptions,
  ): Promise<ResourceType<T>> {
    const name = (type: ResourceType): string => `${apiVersion} ${type.kind}`;
    const known = this.#known.get(`${apiVersion} ${kind}`);
    if (known) return known as ResourceType<T>;
    const list = await this.#client.json<ResourceList>(versionPath(apiVersion), options);
    for (const { type } of resourcesOf(apiVersion, false, list)) this.#known.set(name(type), type);
    const found = this.#known.get(`${apiVersion} ${kind}`);
    if (!found)
      throw new NotFound({ verb: 'discover', resource: apiVersion, object: kind }, 404, {
        reason: 'NotFound',
        message: `the server has no kind ${kind} in ${apiVersion}; is its CRD installed?`,
      });
    return found as ResourceType<T>;
  }
}
