/** Small HTTP servers for probes, metrics and debugging: GET only, a table of paths. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { messageOf } from '../kube/thrown.ts';

export interface Answer {
  readonly status?: number;
  readonly contentType?: string;
  readonly body: string;
}

export type Endpoints = Readonly<Record<string, (query: URLSearchParams) => Answer | Promise<Answer>>>;

export interface HttpEndpoints {
  readonly port: number;
  stop(): Promise<void>;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** `:8081`, `127.0.0.1:0`, `[::1]:9000`, or `0` for none. */
export function parseAddress(text: string): Address | undefined {
  if (text === '' || text === '0') return undefined;
  const at = text.lastIndexOf(':');
  const host = text.slice(0, Math.max(at, 0)).replaceAll(/^\[|\]$/g, '');
  const port = Number(text.slice(at + 1));
  if (at < 0 || !Number.isInteger(port) || port < 0 || port > 65_535)
    throw new Error(`${JSON.stringify(text)} is no address: write host:port, :port, or 0 for none`);
  return { host: host === '' ? '0.0.0.0' : host, port };
}

/** Header read and idle limits keep a slow client from holding a socket for ever. */
const HEADERS_TIMEOUT_MS = 32_000;
const IDLE_TIMEOUT_MS = 90_000;

export async function serveEndpoints({ host, port }: Address, endpoints: Endpoints): Promise<HttpEndpoints> {
  const server = createServer((request, response) => void answer(request, response, endpoints));
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.keepAliveTimeout = IDLE_TIMEOUT_MS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return { port: (server.address() as AddressInfo).port, stop: () => close(server) };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  endpoints: Endpoints,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const handle = Object.hasOwn(endpoints, url.pathname) ? endpoints[url.pathname] : undefined;
  const {
    status = 200,
    contentType = 'text/plain; charset=utf-8',
    body,
  } = await respond(request, url, handle);
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) });
  response.end(request.method === 'HEAD' ? undefined : body);
}

async function respond(
  request: IncomingMessage,
  url: URL,
  handle: Endpoints[string] | undefined,
): Promise<Answer> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return { status: 405, body: 'only GET\n' };
  if (!handle) return { status: 404, body: 'not found\n' };
  try {
    return await handle(url.searchParams);
  } catch (error) {
    return { status: 500, body: `${messageOf(error)}\n` };
  }
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
}
