/** Admission webhooks as components of the operator: certificates first, then server and registration. */
import type { KubeClient } from '../../kube/client.ts';
import type { System } from '../../resource-managers/kind.ts';
import type { Config } from '../../runtime/config/schema.ts';
import { parseAddress } from '../../runtime/http-endpoints.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Component } from '../../runtime/operator.ts';
import { fileCertificates, ownCertificates, type ServingCertificates } from '../../webhooks/certificates.ts';
import type { WebhookEndpoint } from '../../webhooks/configuration.ts';
import { ConfigurationKeeper } from '../../webhooks/configuration-keeper.ts';
import type { WebhookKind } from '../../webhooks/rules.ts';
import { startWebhookServer, type WebhookServer } from '../../webhooks/server.ts';

export interface WebhookParts {
  readonly client: KubeClient;
  readonly systems: readonly System[];
  readonly config: Config;
  /** Of the operator itself. */
  readonly namespace: string;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Both objects' name. A replica of another release keeps the same ones. */
export const CONFIGURATION_NAME = 'taskflow-operator';
const SERVICE_PORT = 443;

export class Webhooks {
  readonly #parts: WebhookParts;
  #certificates: ServingCertificates | undefined;
  #server: WebhookServer | undefined;
  #keeper: ConfigurationKeeper | undefined;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
  }

  get components(): readonly Component[] {
    return [
      {
        name: 'webhook certificates',
        phase: 'certificates',
        start: (signal) => this.#obtainCertificates(signal),
        stop: async () => this.#certificates?.stop(),
      },
      {
        name: 'webhooks',
        phase: 'webhooks',
        start: () => this.#serve(),
        stop: () => this.#end(),
      },
    ];
  }

  /** For `/readyz`. */
  fault(): string | undefined {
    return this.#server ? undefined : 'not serving yet';
  }

  async #obtainCertificates(signal: AbortSignal): Promise<void> {
    const { client, config, namespace, log, metrics } = this.#parts;
    const { certificates, secret, certFile, keyFile, caFile, certificateLifetime } = config.webhooks;
    const common = { log, observer: metrics.certificates };
    this.#certificates =
      certificates === 'files'
        ? await fileCertificates({ ...common, certFile, keyFile, ...(caFile !== '' && { caFile }) })
        : await ownCertificates({
            ...common,
            client,
            namespace,
            secretName: secret,
            hosts: this.#hosts(),
            lifetimeMs: certificateLifetime,
            signal,
          });
  }

  async #serve(): Promise<void> {
    const { client, config, log, metrics } = this.#parts;
    const address = parseAddress(config.webhooks.address);
    const certificates = this.#certificates;
    if (!address || !certificates) throw new Error('webhooks.address must name a port');
    const kinds = this.#kinds();
    this.#server = await startWebhookServer({
      ...address,
      certificate: certificates,
      kinds,
      client,
      log,
      observer: metrics.webhooks,
    });
    this.#keeper = new ConfigurationKeeper({
      client,
      kinds,
      certificates,
      name: CONFIGURATION_NAME,
      endpoint: this.#endpoint(),
      log,
    });
    await this.#keeper.start();
  }

  async #end(): Promise<void> {
    await this.#keeper?.stop();
    await this.#server?.stop();
  }

  /** Every kind has a route, even without rules: its schema's refinements and defaults count. */
  #kinds(): WebhookKind[] {
    return this.#parts.systems.flatMap(({ kinds }) =>
      kinds.map(({ schema, webhook = {} }) => ({ schema, rules: webhook })),
    );
  }

  #endpoint(): WebhookEndpoint {
    const { config, namespace } = this.#parts;
    if (config.webhooks.url !== '') return { url: config.webhooks.url };
    return { service: { namespace, name: config.webhooks.service, port: SERVICE_PORT } };
  }

  /** The names that the API server calls us by. */
  #hosts(): string[] {
    const { config, namespace } = this.#parts;
    const { url, service } = config.webhooks;
    if (url !== '') return [new URL(url).hostname];
    return [service, `${service}.${namespace}`, `${service}.${namespace}.svc`];
  }
}
