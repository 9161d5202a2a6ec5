/** What runs the operator: its settings, its Pods, and how the API server reaches its webhooks. */
import { createHash } from 'node:crypto';
import type * as k8s from '@kubernetes/client-node';
import { dump } from 'js-yaml';
import type { Json, KubeObject } from '../../kube/resource-type.ts';
import { CONFIG_DIR, CONFIG_FILE, labelsOf, OPERATOR, webhookName } from './names.ts';

export interface WorkloadOptions {
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  readonly replicas: number;
  readonly systems: readonly { readonly name: string }[];
  readonly namespaces: readonly string[];
  readonly webhooks: boolean;
}

type ConfigMap = Json<k8s.V1ConfigMap>;
type Service = Json<k8s.V1Service>;
type Deployment = Json<k8s.V1Deployment>;
type PodSpec = Json<k8s.V1PodSpec>;
type Container = Json<k8s.V1Container>;
type Probe = Json<k8s.V1Probe>;
type DisruptionBudget = Json<k8s.V1PodDisruptionBudget>;

const HEALTH_PORT = 8081;
const METRICS_PORT = 8080;
const WEBHOOK_PORT = 9443;
/** Nobody in particular; the same number is in the Dockerfile. */
const USER = 65_532;

/**
 * Everything that must agree with the roles is said, also where it is the
 * default: an operator of a later version must not look for systems or objects
 * that it was given no rights on.
 */
function settings(options: WorkloadOptions): Readonly<Record<string, unknown>> {
  const { name, namespace, namespaces, systems, webhooks } = options;
  return {
    leaderElection: { name, namespace },
    namespaces,
    systems: systems.map((system) => system.name).toSorted(),
    webhooks: webhooks
      ? { enabled: true, secret: webhookName(name), service: webhookName(name) }
      : { enabled: false },
  };
}

export function configMap(options: WorkloadOptions): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: options.name, namespace: options.namespace },
    data: { [CONFIG_FILE]: settingsText(options) },
  };
}

/** As Helm's `toYaml` writes it, with sorted keys, so that the chart makes the same file and the same hash. */
function settingsText(options: WorkloadOptions): string {
  return dump(settings(options), { seqNoIndent: true, lineWidth: -1 });
}

export function webhookService({ name, namespace }: WorkloadOptions): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: webhookName(name), namespace },
    spec: {
      selector: selectorLabels(name),
      ports: [{ name: 'webhook', port: 443, targetPort: 'webhook', protocol: 'TCP' }],
    },
  };
}

/**
 * The objects that tell the API server of the webhooks, still without any: the
 * operator fills them in once it serves. They are here so that they go with
 * the installation; left behind, they would block every write to our kinds.
 */
export function webhookConfigurationShells({ name }: WorkloadOptions): KubeObject[] {
  return ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'].map((kind) => ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind,
    metadata: { name },
  }));
}

/** One Pod at a time may be taken away, also where there is only one: a drain must not wait for ever. */
export function disruptionBudget({ name, namespace }: WorkloadOptions): DisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace },
    spec: {
      maxUnavailable: 1,
      selector: { matchLabels: selectorLabels(name) },
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    },
  };
}

export function deployment(options: WorkloadOptions): Deployment {
  const { name, namespace, replicas } = options;
  const labels = selectorLabels(name);
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      // A new Pod serves webhooks before an old one goes.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: {
        metadata: {
          labels: { ...labelsOf(name) },
          annotations: {
            'kubectl.kubernetes.io/default-container': 'operator',
            // The operator reads its settings once, so that changed settings mean new Pods.
            'taskflow.dev/settings-hash': createHash('sha256').update(settingsText(options)).digest('hex'),
          },
        },
        spec: podSpec(options),
      },
    },
  };
}

/** Passes the Pod Security level `restricted`. */
function podSpec(options: WorkloadOptions): PodSpec {
  const { name } = options;
  return {
    serviceAccountName: name,
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    // Above the 25 s that the operator gives its tasks at shutdown.
    terminationGracePeriodSeconds: 30,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    topologySpreadConstraints: ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map(
      (topologyKey) => ({
        maxSkew: 1,
        topologyKey,
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: selectorLabels(name) },
      }),
    ),
    containers: [operatorContainer(options)],
    volumes: [
      { name: 'config', configMap: { name } },
      { name: 'tmp', emptyDir: {} },
    ],
  };
}

function operatorContainer({ image, webhooks }: WorkloadOptions): Container {
  return {
    name: 'operator',
    image,
    args: ['run', '--config', `${CONFIG_DIR}/${CONFIG_FILE}`],
    ports: [
      { name: 'metrics', containerPort: METRICS_PORT, protocol: 'TCP' },
      { name: 'health', containerPort: HEALTH_PORT, protocol: 'TCP' },
      ...(webhooks ? [{ name: 'webhook', containerPort: WEBHOOK_PORT, protocol: 'TCP' }] : []),
    ],
    // No CPU limit: a throttled leader misses the renewal of its lease.
    resources: { requests: { cpu: '100m', memory: '192Mi' }, limits: { memory: '768Mi' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      readOnlyRootFilesystem: true,
    },
    startupProbe: probe('/healthz', { periodSeconds: 2, failureThreshold: 30 }),
    livenessProbe: probe('/healthz', { periodSeconds: 10, failureThreshold: 6 }),
    readinessProbe: probe('/readyz', { periodSeconds: 5, failureThreshold: 3 }),
    volumeMounts: [
      { name: 'config', mountPath: CONFIG_DIR, readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
    ],
  };
}

function probe(path: string, pace: Pick<Probe, 'periodSeconds' | 'failureThreshold'>): Probe {
  return { httpGet: { path, port: 'health' }, timeoutSeconds: 5, ...pace };
}

/** These never change, since a Deployment's selector cannot. */
function selectorLabels(name: string): Record<string, string> {
  return { 'app.kubernetes.io/name': OPERATOR, 'app.kubernetes.io/instance': name };
}
