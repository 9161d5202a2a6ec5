import { once } from 'node:events';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Agent, createServer, request as httpsRequest, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createCertificateAuthority } from '../../src/kube/certificates.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';

const CONFIG_MAP = '/api/v1/namespaces/default/configmaps/settings';
const WATCH = '/api/v1/configmaps?watch=true&resourceVersion=7';

/** What stands for an API server: it echoes, and its watches say what the test tells them. */
interface FakeApiServer {
  readonly server: Server;
  readonly url: string;
  readonly ca: string;
  readonly applied: string[];
  /** Settles with the next watch that arrives. */
  nextWatch(): Promise<ServerResponse>;
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly trailers: IncomingMessage['trailers'];
  readonly body: string;
}

let api: FakeApiServer;
let proxy: FaultProxy;
let agent: Agent;

beforeEach(async () => {
  api = await startFakeApiServer();
  proxy = await startFaultProxy({ target: { server: api.url, ca: api.ca } });
  agent = new Agent({ keepAlive: true, ca: proxy.ca });
});

afterEach(async () => {
  agent.destroy();
  await proxy.stop();
  api.server.closeAllConnections();
  api.server.close();
});

describe('without faults', () => {
  test('a request and its answer pass unchanged, and are recorded', async () => {
    const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' };
    const answer = await send('PUT', `${CONFIG_MAP}?dryRun=All`, { headers, body: '{"data":{}}' });

    expect(answer).toMatchObject({ status: 201, body: 'applied {"data":{}}' });
    expect(answer.headers).toMatchObject({ 'x-saw-authorization': 'Bearer secret', 'x-saw-dry-run': 'All' });
    expect(answer.trailers).toEqual({ 'x-checksum': 'good' });
    expect(proxy.requests).toMatchObject([{ method: 'PUT', path: CONFIG_MAP, watch: false, status: 201 }]);
    expect(proxy.requests[0]?.query.get('dryRun')).toBe('All');
    expect(proxy.requests[0]).not.toHaveProperty('fault');
  });

  test('large bodies stream both ways, also on a method that seldom has one', async () => {
    const body = 'x'.repeat(8_000_000);
    const answer = await send('DELETE', CONFIG_MAP, { body, headers: { 'transfer-encoding': 'chunked' } });
    expect(answer.body).toHaveLength(body.length + 'applied '.length);
  });

  test('connections are kept and used again', async () => {
    for (let i = 0; i < 5; i++) await send('GET', CONFIG_MAP);
    expect(proxy.openConnections).toBe(1);
  });

  test('a watch passes its headers at once and its events as they come', async () => {
    const { watch, client } = await openWatch();
    expect(proxy.openWatches).toBe(1);
    watch.write(event('a'));
    expect(await client.nextChunk()).toBe(event('a'));
    watch.end(event('b'));
    expect(await client.rest()).toBe(event('b'));
    await expect.poll(() => proxy.openWatches).toBe(0);
  });

  test('a client that goes away ends its request at the API server', async () => {
    const { watch, client } = await openWatch();
    client.answer.destroy();
    await once(watch, 'close');
    expect(watch.writableFinished).toBe(false);
  });

  test('an API server that breaks off, or is not there, breaks the connection', async () => {
    const { watch, client } = await openWatch();
    watch.write(event('a'));
    await client.nextChunk();
    watch.socket?.destroy();
    await expect(client.rest()).rejects.toThrow(/aborted|ECONNRESET/);

    api.server.closeAllConnections();
    api.server.close();
    await expect(send('GET', CONFIG_MAP)).rejects.toThrow(/ECONNRESET|hang up/);
  });

  test('an upgraded connection is a tunnel', async () => {
    const upgrade = httpsRequest(`${proxy.server}/exec`, {
      agent,
      headers: { connection: 'Upgrade', upgrade: 'echo' },
    });
    upgrade.end();
    const [answer, socket] = (await once(upgrade, 'upgrade')) as [IncomingMessage, AnySocket];
    expect(answer.statusCode).toBe(101);
    socket.write('hello');
    expect(String((await once(socket, 'data'))[0])).toBe('hello');
    socket.destroy();
    expect(proxy.requests).toMatchObject([{ path: '/exec', status: 101 }]);
  });
});

describe('refusals', () => {
  test('a conflict as the API server words it, as often as asked', async () => {
    const path = '/apis/apps/v1/namespaces/default/deployments/web';
    const fault = proxy.inject({ kind: 'status', code: 409, method: ['PUT', 'PATCH'], times: 1 });

    expect((await send('GET', path)).status).toBe(200);
    const refused = await send('PUT', path, { body: '{}' });
    expect((await send('PUT', path, { body: '{}' })).status).toBe(201);

    expect(refused.status).toBe(409);
    expect(JSON.parse(refused.body)).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message:
        'Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes to the latest version and try again',
      reason: 'Conflict',
      details: { name: 'web', group: 'apps', kind: 'deployments' },
      code: 409,
    });
    await fault.firstHit;
    expect(fault.hits).toBe(1);
    expect(api.applied).toHaveLength(1);
    expect(proxy.requests[1]).toMatchObject({ status: 409, fault: 'status 409' });
  });

  test('too many requests say when to come back', async () => {
    proxy.inject({ kind: 'status', code: 429, retryAfterSeconds: 3 });
    const { status, headers, body } = await send('GET', '/api/v1/namespaces');
    expect({ status, retryAfter: headers['retry-after'] }).toEqual({ status: 429, retryAfter: '3' });
    expect(JSON.parse(body)).toMatchObject({
      reason: 'TooManyRequests',
      details: { kind: 'namespaces', retryAfterSeconds: 3 },
    });
  });

  test('rules choose by path and by a predicate, and can be removed', async () => {
    const byPath = proxy.inject({ kind: 'status', code: 500, path: /\/secrets/ });
    proxy.inject({
      kind: 'status',
      code: 503,
      where: ({ query }) => query.get('fieldManager') === 'taskflow',
    });
    expect((await send('GET', '/api/v1/secrets')).status).toBe(500);
    expect((await send('GET', `${CONFIG_MAP}?fieldManager=taskflow`)).status).toBe(503);
    expect((await send('GET', CONFIG_MAP)).status).toBe(200);
    byPath.remove();
    expect((await send('GET', '/api/v1/secrets')).status).toBe(200);
    proxy.clear();
    expect((await send('GET', `${CONFIG_MAP}?fieldManager=taskflow`)).status).toBe(200);
  });

  test('a probability hits some requests, and the same ones with the same seed', async () => {
    const first = await whoIsHit(42);
    expect(first).toContain('x');
    expect(first).toContain('.');
    expect(await whoIsHit(42)).toBe(first);
    expect(await whoIsHit(43)).not.toBe(first);
  });

  test('latency delays what the next rule then refuses', async () => {
    proxy.inject({ kind: 'latency', ms: 30 });
    proxy.inject({ kind: 'latency', ms: 30 });
    proxy.inject({ kind: 'status', code: 503 });
    const startedAt = performance.now();
    expect((await send('GET', CONFIG_MAP)).status).toBe(503);
    expect(performance.now() - startedAt).toBeGreaterThan(55);
    expect(proxy.requests[0]?.fault).toBe('latency, latency, status 503');
  });
});

describe('broken connections', () => {
  test('a reset before: nothing was done; after: it was, and nobody knows', async () => {
    proxy.inject({ kind: 'reset', when: 'before', times: 1 });
    await expect(send('PUT', CONFIG_MAP, { body: 'one' })).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(api.applied).toEqual([]);

    proxy.inject({ kind: 'reset', when: 'after', times: 1 });
    await expect(send('PUT', CONFIG_MAP, { body: 'two' })).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(api.applied).toEqual(['two']);
    expect(proxy.requests[1]).toMatchObject({ fault: 'reset after', status: 201 });
  });

  test('all connections at once', async () => {
    const { client } = await openWatch();
    proxy.dropConnections();
    await expect(client.rest()).rejects.toMatchObject({ code: 'ECONNRESET' });
    await expect.poll(() => proxy.openConnections).toBe(0);
    expect((await send('GET', CONFIG_MAP)).status).toBe(200);
  });

  test.each([
    ['before', []],
    ['after', ['one']],
  ] as const)('half-open, %s: the answer never comes', async (when, applied) => {
    const fault = proxy.inject({ kind: 'half-open', when, times: 1 });
    const waiting = settled(send('PUT', CONFIG_MAP, { body: 'one' }));
    await fault.firstHit;
    await expect.poll(() => api.applied).toEqual(applied);
    // A whole round trip of another request, and still nothing.
    expect((await send('GET', CONFIG_MAP)).status).toBe(200);
    expect(waiting.is).toBe('pending');
    expect(api.applied).toEqual(applied);
    expect(proxy.openConnections).toBe(2);
  });

  test('paused: connections are accepted and not a byte moves, until resumed', async () => {
    await send('GET', CONFIG_MAP);
    const { watch, client } = await openWatch();
    proxy.pause();
    const event1 = client.nextChunk();
    const silent = settled(event1);
    const kept = settled(send('GET', CONFIG_MAP));
    const fresh = settled(send('GET', CONFIG_MAP, { agent: false }));
    watch.write(event('a'));
    await expect.poll(() => proxy.openConnections).toBe(3);
    // The API server itself is well.
    await sendTo(api.url, 'GET', CONFIG_MAP, { agent: false, ca: api.ca });
    expect([silent.is, kept.is, fresh.is]).toEqual(['pending', 'pending', 'pending']);
    expect(proxy.requests).toHaveLength(2);

    proxy.resume();

    expect(await event1).toBe(event('a'));
    await expect.poll(() => [kept.is, fresh.is]).toEqual(['fulfilled', 'fulfilled']);
  });

  test('what ends while paused shows when resumed', async () => {
    const { watch, client } = await openWatch();
    proxy.pause();
    const rest = settled(client.rest());
    watch.socket?.destroy();
    await sendTo(api.url, 'GET', CONFIG_MAP, { agent: false, ca: api.ca });
    expect(rest.is).toBe('pending');
    proxy.resume();
    await expect.poll(() => rest.is).toBe('rejected');
  });

  test('stopping ends what hangs', async () => {
    const fault = proxy.inject({ kind: 'half-open' });
    const waiting = send('GET', CONFIG_MAP).catch((error: unknown) => error);
    await fault.firstHit;
    await proxy.stop();
    expect(await waiting).toMatchObject({ code: 'ECONNRESET' });
  });
});

describe('watches', () => {
  test('dropped after a number of events, of which every one arrives', async () => {
    proxy.inject({ kind: 'drop-watch', afterEvents: 2, times: 1 });
    const { watch, client } = await openWatch();
    const ended = once(watch, 'close');
    watch.write(event('a'));
    watch.write(event('b') + event('c'));
    expect(await client.untilBroken()).toBe(event('a') + event('b'));
    await ended;
    expect(client.answer.complete).toBe(false);
  });

  test('dropped after a time, or at once', async () => {
    proxy.inject({ kind: 'drop-watch', afterMs: 20, times: 1 });
    const first = await openWatch();
    expect(await first.client.untilBroken()).toBe('');

    proxy.inject({ kind: 'drop-watch', times: 1 });
    const second = await openWatch();
    expect(await second.client.untilBroken()).toBe('');
  });

  test('ended properly, as by the time-out of the API server', async () => {
    proxy.inject({ kind: 'drop-watch', afterEvents: 1, clean: true });
    const { watch, client } = await openWatch();
    watch.write(event('a') + event('b'));
    expect(await client.rest()).toBe(event('a'));
    expect(client.answer.complete).toBe(true);
  });

  test('told that the resource version is too old', async () => {
    proxy.inject({ kind: 'watch-gone', times: 1 });
    expect((await send('GET', CONFIG_MAP)).status).toBe(200);
    const { status, body } = await send('GET', WATCH);
    expect(status).toBe(200);
    expect(JSON.parse(body)).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version: 7 (1007)' },
    });
  });

  test('half-open: some events, then silence on an open connection', async () => {
    proxy.inject({ kind: 'half-open', watch: true, afterEvents: 1 });
    const { watch, client } = await openWatch();
    const ended = once(watch, 'close');
    watch.write(event('a') + event('b'));
    expect(await client.nextChunk()).toBe(event('a'));
    await ended;
    const rest = settled(client.rest());
    await send('GET', CONFIG_MAP);
    expect(rest.is).toBe('pending');
    expect(proxy.openWatches).toBe(1);
  });

  test('those that are open can be dropped or silenced by rule', async () => {
    const dropped = await openWatch();
    const silenced = await openWatch('/api/v1/secrets?watch=1');
    expect(proxy.silenceWatches({ path: /secrets/ })).toBe(1);
    expect(proxy.dropWatches({ path: /configmaps/ })).toBe(1);
    expect(await dropped.client.untilBroken()).toBe('');
    const rest = settled(silenced.client.rest());
    await send('GET', CONFIG_MAP);
    expect(rest.is).toBe('pending');
    // New ones are not concerned.
    const { watch, client } = await openWatch();
    watch.write(event('a'));
    expect(await client.nextChunk()).toBe(event('a'));
  });
});

type AnySocket = NonNullable<ServerResponse['socket']>;

interface SendOptions {
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
  readonly agent?: Agent | false;
  readonly ca?: string;
}

async function send(method: string, path: string, options: SendOptions = {}): Promise<Answer> {
  return sendTo(proxy.server, method, path, options);
}

async function sendTo(base: string, method: string, path: string, options: SendOptions): Promise<Answer> {
  const request = httpsRequest(new URL(path, base), {
    method,
    agent: options.agent ?? agent,
    ca: options.ca ?? proxy.ca,
    headers: options.headers ?? {},
  });
  request.end(options.body);
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  const body = await text(answer);
  return { status: answer.statusCode, headers: answer.headers, trailers: answer.trailers, body };
}

/** Which of two dozen requests a rule with that seed refuses. */
async function whoIsHit(seed: number): Promise<string> {
  const rule = proxy.inject({ kind: 'status', code: 500, probability: 0.5, seed });
  let pattern = '';
  for (let i = 0; i < 24; i++) pattern += (await send('GET', CONFIG_MAP)).status === 500 ? 'x' : '.';
  rule.remove();
  return pattern;
}

/** Opens a watch through the proxy; returns both of its ends. */
async function openWatch(path = WATCH) {
  const arrived = api.nextWatch();
  const request = httpsRequest(new URL(path, proxy.server), { agent });
  request.on('error', () => undefined);
  request.end();
  const [[answer], watch] = await Promise.all([
    once(request, 'response') as Promise<[IncomingMessage]>,
    arrived,
  ]);
  answer.setEncoding('utf8');
  return { watch, client: watchClient(answer) };
}

function watchClient(answer: IncomingMessage) {
  return {
    answer,
    async nextChunk(): Promise<string> {
      const [chunk] = (await once(answer, 'data')) as [string];
      answer.pause();
      return chunk;
    },
    /** To the proper end; rejects if the stream breaks off. */
    rest: async (): Promise<string> => text(answer),
    /** What came before the stream broke off. */
    async untilBroken(): Promise<string> {
      let received = '';
      answer.on('data', (chunk: string) => (received += chunk));
      const error = answer.errored ?? (await once(answer, 'error'))[0];
      expect(error).toMatchObject({ code: 'ECONNRESET' });
      return received;
    },
  };
}

function event(name: string): string {
  return `${JSON.stringify({ type: 'ADDED', object: { metadata: { name } } })}\n`;
}

/** Lets a test say that something has not happened yet. */
function settled(promise: Promise<unknown>): { is: 'pending' | 'fulfilled' | 'rejected' } {
  const state: { is: 'pending' | 'fulfilled' | 'rejected' } = { is: 'pending' };
  promise.then(
    () => (state.is = 'fulfilled'),
    () => (state.is = 'rejected'),
  );
  return state;
}

async function startFakeApiServer(): Promise<FakeApiServer> {
  const authority = await createCertificateAuthority('fake-api-server-ca');
  const { certPem, keyPem } = await authority.issue({
    commonName: 'fake-api-server',
    usages: ['server'],
    hosts: ['127.0.0.1'],
  });
  const applied: string[] = [];
  const server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
    void answerAsApiServer(request, response, applied, server);
  });
  server.on('upgrade', (_request, socket: AnySocket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    server,
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ca: authority.certPem,
    applied,
    async nextWatch() {
      const [watch] = (await once(server, 'test:watch')) as [ServerResponse];
      return watch;
    },
  };
}

async function answerAsApiServer(
  request: IncomingMessage,
  response: ServerResponse,
  applied: string[],
  server: Server,
): Promise<void> {
  const { searchParams } = new URL(request.url ?? '/', 'https://api');
  if (searchParams.has('watch')) {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    server.emit('test:watch', response);
    return;
  }
  const body = await text(request);
  if (request.method === 'GET') {
    response.end('{}');
    return;
  }
  applied.push(body);
  response.writeHead(201, {
    'x-saw-authorization': request.headers.authorization ?? '',
    'x-saw-dry-run': searchParams.get('dryRun') ?? '',
    trailer: 'x-checksum',
  });
  response.write(`applied ${body}`);
  response.addTrailers({ 'x-checksum': 'good' });
  response.end();
}
