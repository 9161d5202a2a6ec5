/** The objects that tell the API server of the webhooks. Pure. */
import { createHash } from 'node:crypto';
import type * as k8s from '@kubernetes/client-node';
import type { AdmissionMode } from './admission.ts';
import { webhookRoute } from './routes.ts';
import { validatedOperations, type WebhookKind } from './rules.ts';
import { defineResource, type Json } from '../kube/resource-type.ts';

export type MutatingConfiguration = Json<k8s.V1MutatingWebhookConfiguration>;
export type ValidatingConfiguration = Json<k8s.V1ValidatingWebhookConfiguration>;
type Selector = Json<k8s.V1LabelSelector>;
type ClientConfig = Json<k8s.AdmissionregistrationV1WebhookClientConfig>;

export const mutatingConfigurations = defineResource<MutatingConfiguration>(
  'admissionregistration.k8s.io/v1',
  'MutatingWebhookConfiguration',
  'mutatingwebhookconfigurations',
  'Cluster',
);
export const validatingConfigurations = defineResource<ValidatingConfiguration>(
  'admissionregistration.k8s.io/v1',
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
  'Cluster',
);

/** How the API server reaches us: by URL where it runs beside us, by Service in a cluster. */
export type WebhookEndpoint =
  | { readonly url: string }
  | {
      readonly service: {
        readonly namespace: string;
        readonly name: string;
        readonly port: number;
        /** Before the routes, if something in front of us wants it. */
        readonly path?: string;
      };
    };

export interface ConfigurationOptions {
  /** Of both objects. */
  readonly name: string;
  readonly endpoint: WebhookEndpoint;
  /** PEM. Without it somebody else fills it in, as cert-manager's injector does. */
  readonly caBundle?: string | undefined;
  /** Which namespaces' objects are looked at; all by default. */
  readonly namespaceSelector?: Selector;
  /** E.g. `cert-manager.io/inject-ca-from`. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** How long the API server waits; default 10. */
  readonly timeoutSeconds?: number;
}

/** Tells whether what was applied is what would be applied now; webhooks that are gone do not show otherwise. */
export const FINGERPRINT = 'taskflow.dev/webhooks-fingerprint';
const TIMEOUT_SECONDS = 10;

export function webhookConfigurations(
  kinds: readonly WebhookKind[],
  options: ConfigurationOptions,
): { mutating: MutatingConfiguration; validating: ValidatingConfiguration } {
  const mutating = kinds.map((kind) => ({
    ...webhookOf(kind, 'mutate', options),
    reinvocationPolicy: 'Never',
  }));
  const validating = kinds.map((kind) => webhookOf(kind, 'validate', options));
  return {
    mutating: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: metadataOf(options, mutating),
      webhooks: mutating,
    },
    validating: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: metadataOf(options, validating),
      webhooks: validating,
    },
  };
}

/** Everything is said, also what is the default: a change of it by hand is then found. */
function webhookOf({ schema, rules }: WebhookKind, mode: AdmissionMode, options: ConfigurationOptions) {
  const operations = mode === 'mutate' ? ['CREATE', 'UPDATE'] : [...validatedOperations(rules)];
  return {
    name: `${mode}.${schema.plural}.${schema.group}`,
    admissionReviewVersions: ['v1'],
    clientConfig: clientConfigOf(webhookRoute(mode, schema), options),
    failurePolicy: rules.failurePolicy ?? 'Fail',
    matchPolicy: 'Equivalent',
    namespaceSelector: options.namespaceSelector ?? {},
    objectSelector: {},
    rules: [
      {
        apiGroups: [schema.group],
        apiVersions: [schema.version],
        operations,
        resources: [schema.plural],
        scope: schema.namespaced ? 'Namespaced' : 'Cluster',
      },
    ],
    sideEffects: 'None',
    timeoutSeconds: options.timeoutSeconds ?? TIMEOUT_SECONDS,
  };
}

function clientConfigOf(route: string, { endpoint, caBundle }: ConfigurationOptions): ClientConfig {
  const trust = caBundle === undefined ? {} : { caBundle: Buffer.from(caBundle).toString('base64') };
  if ('url' in endpoint) return { ...trust, url: `${endpoint.url.replace(/\/$/, '')}${route}` };
  const { namespace, name, port, path = '' } = endpoint.service;
  return { ...trust, service: { namespace, name, port, path: `${path.replace(/\/$/, '')}${route}` } };
}

function metadataOf(
  { name, annotations }: ConfigurationOptions,
  webhooks: readonly { readonly clientConfig: ClientConfig }[],
) {
  const lasting = webhooks.map(({ clientConfig, ...rest }) => {
    const { caBundle: _, ...address } = clientConfig;
    return { ...rest, address };
  });
  const fingerprint = createHash('sha256').update(JSON.stringify(lasting)).digest('hex').slice(0, 16);
  return {
    name,
    labels: { 'app.kubernetes.io/part-of': 'taskflow-operator' },
    annotations: { ...annotations, [FINGERPRINT]: fingerprint },
  };
}

/** Whether everything of `wanted` is in `found`, which may have more: the API server fills in defaults. */
export function contains(found: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) return Array.isArray(found) && containsItems(found, wanted);
  if (typeof wanted !== 'object' || wanted === null) return found === wanted;
  if (typeof found !== 'object' || found === null) return false;
  const entries = Object.entries(wanted);
  // An empty selector means all, so it must be empty there too.
  if (entries.length === 0) return Object.keys(found).length === 0;
  return entries.every(([key, value]) => contains((found as Record<string, unknown>)[key], value));
}

/** Webhooks are told apart by their names; what others added beside them is not ours to judge. */
function containsItems(found: readonly unknown[], wanted: readonly unknown[]): boolean {
  const names = wanted.map(itemName);
  if (names.length > 0 && names.every((name) => name !== undefined))
    return wanted.every((item) =>
      contains(
        found.find((other) => itemName(other) === itemName(item)),
        item,
      ),
    );
  return found.length === wanted.length && wanted.every((item, index) => contains(found[index], item));
}

function itemName(item: unknown): unknown {
  return typeof item === 'object' && item !== null && 'name' in item ? item.name : undefined;
}

export { ConfigurationKeeper, type ConfigurationKeeperOptions } from './configuration-keeper.ts';
