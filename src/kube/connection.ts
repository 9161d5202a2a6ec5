/**
 * One API server and who we are to it. Watches get an agent of their own:
 * they hold a socket each for minutes, and must not starve the short calls.
 * The pair of agents is shared by all clients of the connection; it is made
 * anew only when the client certificate changes, and the old pair goes when
 * its last call has ended. Several connections do not know of each other.
 */
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import { type Clock, systemClock } from './clock.ts';
import {
  type Credentials,
  fixedCredentials,
  type Identity,
  tokenFileCredentials,
  tokenIdentity,
} from './credentials.ts';

export interface ConnectionOptions {
  /** `https://host:port`, with a path if the API server is behind one. */
  readonly server: string;
  /** PEM of the authority that signed the server's certificate; empty: those that the system trusts. */
  readonly ca: string;
  readonly clientCertificate?: { readonly certPem: string; readonly keyPem: string };
  readonly token?: string;
  /** A file whose token changes; wins over `token`. */
  readonly tokenFile?: string;
  /** Any other source of who we are; wins over the three above. */
  readonly credentials?: Credentials;
  /** The name in the server's certificate, if it is not the host of `server`. */
  readonly tlsServerName?: string;
  /** Trust any certificate. For a look at a broken cluster, never for an operator. */
  readonly insecureSkipTlsVerify?: boolean;
  /** HTTP(S) proxy between us and the server. */
  readonly proxyUrl?: string;
  readonly clock?: Clock;
}

export interface Agents {
  readonly calls: Dispatcher;
  readonly watches: Dispatcher;
}

export interface Connection extends AsyncDisposable {
  readonly server: string;
  /** `server` without its path, as undici wants it. */
  readonly origin: string;
  /** The path of `server` without a slash at its end; mostly empty. */
  readonly basePath: string;
  /** For the next request. */
  identity(): Identity | Promise<Identity>;
  /** After a 401: whether there is another identity to try. */
  renew(used: Identity): Promise<boolean>;
  agents(identity: Identity): Agents;
  /** Breaks off what is under way. */
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 15_000;
/** Below the idle time-outs of load balancers, far below the 90 s of the API server. */
const KEEP_ALIVE_MS = 30_000;

export function openConnection(options: ConnectionOptions): Connection {
  const credentials = credentialsOf(options);
  const { origin, pathname } = new URL(options.server);
  const pairs = new AgentPairs(options);
  return {
    server: options.server,
    origin,
    basePath: pathname.replace(/\/+$/, ''),
    identity: () => credentials.identity(),
    renew: (used) => credentials.renew(used),
    agents: (identity) => pairs.for(identity),
    close: () => pairs.destroy(),
    [Symbol.asyncDispose]: () => pairs.destroy(),
  };
}

function credentialsOf(options: ConnectionOptions): Credentials {
  if (options.credentials) return options.credentials;
  if (options.tokenFile !== undefined)
    return tokenFileCredentials(options.tokenFile, options.clock ?? systemClock);
  return fixedCredentials({
    ...(options.token === undefined ? { headers: {} } : tokenIdentity(options.token)),
    clientCertificate: options.clientCertificate,
  });
}

class AgentPairs {
  readonly #options: ConnectionOptions;
  readonly #retired = new Set<Agents>();
  #current: (Agents & { readonly certificate: Identity['clientCertificate'] }) | undefined;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  for({ clientCertificate }: Identity): Agents {
    const now = this.#current;
    if (now && sameCertificate(now.certificate, clientCertificate)) return now;
    if (this.#closed) throw new Error(`the connection to ${this.#options.server} was closed`);
    if (now) this.#retire(now);
    this.#current = {
      // HTTP/1.1: one HTTP/2 session carries 100 streams, then every further call waits.
      calls: this.#agent(clientCertificate, {}),
      watches: this.#agent(clientCertificate, { bodyTimeout: 0, pipelining: 0 }),
      certificate: clientCertificate,
    };
    return this.#current;
  }

  async destroy(): Promise<void> {
    this.#closed = true;
    const pairs = [...(this.#current ? [this.#current] : []), ...this.#retired];
    await Promise.all(pairs.flatMap(({ calls, watches }) => [calls.destroy(), watches.destroy()]));
  }

  #retire(pair: Agents): void {
    this.#retired.add(pair);
    // Resolves when the last answer is complete; a watch may take its ten minutes.
    void Promise.allSettled([pair.calls.close(), pair.watches.close()]).then(() =>
      this.#retired.delete(pair),
    );
  }

  #agent(certificate: Identity['clientCertificate'], options: Agent.Options): Dispatcher {
    const { ca, tlsServerName, insecureSkipTlsVerify, proxyUrl } = this.#options;
    const tls = {
      ...(ca !== '' && { ca }),
      ...(certificate && { cert: certificate.certPem, key: certificate.keyPem }),
      ...(tlsServerName !== undefined && { servername: tlsServerName }),
      ...(insecureSkipTlsVerify && { rejectUnauthorized: false }),
    };
    const common = { ...options, allowH2: false, keepAliveTimeout: KEEP_ALIVE_MS };
    const tcp = { timeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS };
    return proxyUrl === undefined
      ? new Agent({ ...common, connect: { ...tls, ...tcp } })
      : new ProxyAgent({ ...common, uri: proxyUrl, requestTls: { ...tls, ...tcp }, connect: tcp });
  }
}

function sameCertificate(a: Identity['clientCertificate'], b: Identity['clientCertificate']): boolean {
  return a === b || (a?.certPem === b?.certPem && a?.keyPem === b?.keyPem);
}
