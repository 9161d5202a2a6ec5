/**
 * An HTTPS proxy in front of a real API server that injects faults by rule.
 *
 * A client uses `server` and `ca` of the proxy instead of those of the API
 * server. It must authenticate by a header (a bearer token): a client
 * certificate ends at the proxy, which has no key to present it with.
 *
 * Two layers: connections (reset, pause) in connection-gate.ts, requests
 * (everything else) in exchange.ts. Requests are recorded when they arrive,
 * faults are chosen at that moment and stay with the request.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createCertificateAuthority } from '../../src/kube/certificates.ts';
import { ConnectionGate } from './fault-proxy/connection-gate.ts';
import { Exchange, type Upstream } from './fault-proxy/exchange.ts';
import {
  type Fault,
  FaultRules,
  type InjectedFault,
  type Match,
  matches,
  type ProxiedRequest,
} from './fault-proxy/faults.ts';
import { tunnelUpgrade } from './fault-proxy/tunnel.ts';

export type { Fault, InjectedFault, Match, ProxiedRequest } from './fault-proxy/faults.ts';

export interface FaultProxyOptions {
  /** The API server: its https URL, and the PEM of the authority that signed its certificate. */
  readonly target: { readonly server: string; readonly ca: string };
}

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly watch: boolean;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** What the API server answered, or the fault in its place; absent as long as there is none. */
  readonly status?: number;
  /** The faults that hit it, for example `latency, status 409`. */
  readonly fault?: string;
}

export interface FaultProxy extends AsyncDisposable {
  /** What a client connects to. */
  readonly server: string;
  readonly ca: string;
  /** Holds for requests that arrive from now on. */
  inject(fault: Fault): InjectedFault;
  /** Removes every rule. Requests that a fault holds stay held. */
  clear(): void;
  readonly requests: readonly RecordedRequest[];
  readonly openConnections: number;
  readonly openWatches: number;
  /** Resets every connection now. */
  dropConnections(): void;
  /** Breaks off the watches that are open now; returns how many. */
  dropWatches(match?: Match): number;
  /** The watches that are open now stay open and say nothing more; returns how many. */
  silenceWatches(match?: Match): number;
  /** Half-open: connections stay and are accepted, and not a byte moves in either direction. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

type MutableRecord = { -readonly [Key in keyof RecordedRequest]: RecordedRequest[Key] };

export async function startFaultProxy({ target }: FaultProxyOptions): Promise<FaultProxy> {
  const rules = new FaultRules();
  const requests: RecordedRequest[] = [];
  const exchanges = new Set<Exchange>();
  const { server, ca } = await createHttpsServer();
  const gate = await ConnectionGate.open((server.address() as AddressInfo).port);
  const upstream: Upstream = {
    target: new URL(target.server),
    agent: new Agent({ keepAlive: true, ca: target.ca }),
    resetClient: (request) => gate.reset(request.socket.remotePort),
  };

  server.on('request', (incoming, response) => {
    const request = describe(incoming);
    const verdict = rules.judge(request);
    const onStatus = record(requests, request, verdict.description);
    const exchange = new Exchange(request, incoming, response, upstream, onStatus);
    exchanges.add(exchange);
    response.once('close', () => exchanges.delete(exchange));
    void exchange.run(verdict);
  });
  server.on('upgrade', (incoming, socket, head) => {
    tunnelUpgrade(incoming, socket, head, upstream, record(requests, describe(incoming), undefined));
  });

  const openWatches = (match: Match = {}): Exchange[] =>
    [...exchanges].filter(({ request, streaming }) => request.watch && streaming && matches(match, request));
  const stop = async (): Promise<void> => {
    await gate.close();
    await closeServer(server);
    upstream.agent.destroy();
  };
  return {
    server: `https://127.0.0.1:${gate.port}`,
    ca,
    inject: (fault) => rules.inject(fault),
    clear: () => rules.clear(),
    requests,
    get openConnections() {
      return gate.openConnections;
    },
    get openWatches() {
      return openWatches().length;
    },
    dropConnections: () => gate.resetAll(),
    dropWatches: (match) => openWatches(match).map((exchange) => exchange.drop()).length,
    silenceWatches: (match) => openWatches(match).map((exchange) => exchange.silence()).length,
    pause: () => gate.pause(),
    resume: () => gate.resume(),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function createHttpsServer(): Promise<{ server: Server; ca: string }> {
  // Not the name of the leaf: a certificate whose issuer has its own name counts as self-signed.
  const authority = await createCertificateAuthority('fault-proxy-ca');
  const { certPem, keyPem } = await authority.issue({
    commonName: 'fault-proxy',
    usages: ['server'],
    hosts: ['127.0.0.1', 'localhost'],
  });
  const server = createServer({ cert: certPem, key: keyPem, ALPNProtocols: ['http/1.1'] });
  // Idle connections are the client's to close: a time-out here would be a fault that nobody injected.
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, ca: authority.certPem };
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}

function describe(incoming: IncomingMessage): ProxiedRequest {
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'https://proxy');
  const method = incoming.method ?? 'GET';
  const watch = method === 'GET' && ['1', 'true'].includes(searchParams.get('watch') ?? '');
  return { method, path: pathname, query: searchParams, headers: incoming.headers, watch };
}

/** Returns what completes the record once the status is known. */
function record(
  requests: RecordedRequest[],
  { method, path, query, watch }: ProxiedRequest,
  fault: string | undefined,
): (status: number) => void {
  const entry: MutableRecord = { method, path, query, watch, at: Date.now() };
  if (fault !== undefined) entry.fault = fault;
  requests.push(entry);
  return (status) => {
    entry.status = status;
  };
}
