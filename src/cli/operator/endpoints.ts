/** The HTTP side of the operator: probes, metrics, and debugging on loopback. */
import { isIP } from 'node:net';
import type { Config } from '../../runtime/config/schema.ts';
import type { HealthChecks } from '../../runtime/health.ts';
import {
  type Address,
  type Endpoints as Paths,
  type HttpEndpoints,
  parseAddress,
  serveEndpoints,
} from '../../runtime/http-endpoints.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { UserError } from '../user-error.ts';

export interface EndpointsOptions {
  readonly config: Config;
  readonly health: HealthChecks;
  readonly metrics: Metrics;
  /** What each path shows, as JSON. */
  readonly debug: Readonly<Record<string, () => unknown>>;
  readonly log: Logger;
}

export class Endpoints {
  readonly #options: EndpointsOptions;
  readonly #servers: HttpEndpoints[] = [];

  constructor(options: EndpointsOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { config, health, metrics, debug, log } = this.#options;
    await this.#serve('health', parseAddress(config.health.address), health.endpoints());
    await this.#serve('metrics', parseAddress(config.metrics.address), {
      '/metrics': async () => metrics.scrape(),
    });
    await this.#serve('debug', loopbackOnly(parseAddress(config.debug.address)), asJson(debug));
    process.on('SIGUSR2', () => {
      for (const [path, show] of Object.entries(debug)) log.info('debug', { path, content: show() });
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
  }

  async #serve(what: string, address: Address | undefined, paths: Paths): Promise<void> {
    if (!address) return;
    const server = await serveEndpoints(address, paths);
    this.#servers.push(server);
    this.#options.log.info('endpoint serves', { what, host: address.host, port: server.port });
  }
}

function asJson(debug: EndpointsOptions['debug']): Paths {
  return Object.fromEntries(
    Object.entries(debug).map(([path, show]) => [
      path,
      () => ({ contentType: 'application/json', body: `${JSON.stringify(show(), undefined, 2)}\n` }),
    ]),
  );
}

/** What is shown there is for whoever is on the machine, not for the network. */
function loopbackOnly(address: Address | undefined): Address | undefined {
  if (!address) return undefined;
  const { host } = address;
  const loopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (!loopback)
    throw new UserError(`debug.address must be on loopback, e.g. 127.0.0.1:6060, not ${host}`, 2);
  return address;
}
