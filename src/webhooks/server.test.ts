import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { Agent, request } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { webhookKind, type WebhookRules } from './rules.ts';
import { startWebhookServer, type WebhookServer, type WebhookServerOptions } from './server.ts';
import { renewed } from './serving-state.ts';
import type { KeyPair } from '../kube/certificates.ts';
import type { KubeClient } from '../kube/client.ts';
import { defineSchema, type ObjectOf } from '../kube/schema/define-schema.ts';

const boxes = defineSchema({
  group: 'test.taskflow.dev',
  version: 'v1',
  kind: 'Box',
  spec: z.object({
    size: z.int().min(1).default(1),
    items: z.array(z.object({ name: z.string() })).optional(),
  }),
  status: z.object({}),
});
type Box = ObjectOf<typeof boxes>;
const VALIDATE = '/validate/test.taskflow.dev/v1/boxes';
const MUTATE = '/mutate/test.taskflow.dev/v1/boxes';

const settings = {
  hosts: ['127.0.0.1'],
  lifetimeMs: 3_600_000,
  authorityLifetimeMs: 36_000_000,
  renewAfter: 2 / 3,
  overlapMs: 0,
};

/** A certificate that a test can change under the server. */
class ChangingCertificate {
  current: KeyPair;
  readonly ca: string;
  readonly #listeners = new Set<() => void>();

  constructor(current: KeyPair, ca: string) {
    this.current = current;
    this.ca = ca;
  }

  static async make(): Promise<ChangingCertificate> {
    const state = await renewed(undefined, settings, Date.now());
    return new ChangingCertificate(state.serving, state.authorities.join(''));
  }

  change(pair: KeyPair): void {
    this.current = pair;
    for (const listener of this.#listeners) listener();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

const cleanups: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

interface PostOptions {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly method?: 'POST' | 'GET' | 'PUT';
}

interface Running {
  readonly server: WebhookServer;
  readonly certificate: ChangingCertificate;
  readonly url: string;
  readonly agent: Agent;
  readonly post: (body: string | Buffer, options?: PostOptions) => Promise<{ code: number; text: string }>;
}

async function running(
  rules: WebhookRules<Box> = {},
  options: Partial<WebhookServerOptions> = {},
): Promise<Running> {
  const certificate = await ChangingCertificate.make();
  const server = await startWebhookServer({
    host: '127.0.0.1',
    port: 0,
    certificate,
    kinds: [webhookKind(boxes, rules)],
    client: {} as KubeClient,
    ...options,
  });
  const agent = new Agent({ connect: { ca: certificate.ca }, allowH2: false });
  cleanups.push(
    () => server.stop(),
    () => agent.destroy(),
  );
  const url = `https://127.0.0.1:${server.port}`;
  return {
    server,
    certificate,
    url,
    agent,
    async post(body, { path = VALIDATE, headers, method = 'POST' } = {}) {
      const response = await request(`${url}${path}`, {
        dispatcher: agent,
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...(method !== 'GET' && { body }),
      });
      return { code: response.statusCode, text: await response.body.text() };
    },
  };
}

function review(spec: unknown = {}, uid = 'u1'): string {
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid,
      kind: { group: 'test.taskflow.dev', version: 'v1', kind: 'Box' },
      resource: { group: 'test.taskflow.dev', version: 'v1', resource: 'boxes' },
      operation: 'CREATE',
      name: 'b1',
      namespace: 'default',
      userInfo: { username: 'ann', groups: ['system:authenticated'] },
      object: { apiVersion: 'test.taskflow.dev/v1', kind: 'Box', metadata: { name: 'b1' }, spec },
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
    },
  });
}

interface Answer {
  readonly kind: string;
  readonly response: {
    readonly uid: string;
    readonly allowed: boolean;
    readonly status?: { readonly code: number };
  };
}

function answerOf({ text }: { text: string }): Answer['response'] {
  return (JSON.parse(text) as Answer).response;
}

describe('answers', () => {
  it('reviews', async () => {
    const { post } = await running();
    expect(answerOf(await post(review({ size: 1 })))).toEqual({ uid: 'u1', allowed: true });
    expect(answerOf(await post(review({ size: 0 })))).toMatchObject({
      allowed: false,
      status: { code: 422 },
    });
    expect(answerOf(await post(review({}), { path: MUTATE }))).toMatchObject({
      allowed: true,
      patchType: 'JSONPatch',
    });
  });

  it('with the content type in other spellings, and the time-out of the API server', async () => {
    const { post } = await running();
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' };
    expect((await post(review(), { headers, path: `${VALIDATE}?timeout=10s` })).code).toBe(200);
  });

  it.each([
    [404, { path: '/validate/test.taskflow.dev/v1/boxen' }],
    [404, { path: '/' }],
    [404, { path: '/validate//test.taskflow.dev/v1/boxes' }],
    [405, { method: 'GET' as const }],
    [405, { method: 'PUT' as const }],
    [415, { headers: { 'content-type': 'text/plain' } }],
    [415, { headers: { 'content-type': 'application/yaml' } }],
    [415, { headers: { 'content-encoding': 'gzip' } }],
  ])('%i to %j', async (code, options) => {
    const { post } = await running();
    const answer = await post(review(), options);
    expect(answer.code).toBe(code);
    expect(answer.text.length).toBeLessThan(100);
    expect((await post(review())).code).toBe(200);
  });

  it.each(['', '{', 'null', '[]', '{}', 'rubbish', '{"request":{}}'])('400 to the body %j', async (body) => {
    const { post } = await running();
    expect((await post(body)).code).toBe(400);
  });

  it('400 to bytes that are not UTF-8', async () => {
    const { post } = await running();
    expect((await post(Buffer.from([0x22, 0xff, 0xfe, 0x22]))).code).toBe(400);
  });

  it('500 in due form when a rule throws, and goes on', async () => {
    const codes: number[] = [];
    let panics = 0;
    const { post } = await running(
      {
        validate(object) {
          if (object.spec.size === 13) throw new Error('unlucky');
          return [];
        },
      },
      { observer: { finished: (_, code) => codes.push(code), panicked: () => panics++ } },
    );
    expect(answerOf(await post(review({ size: 13 })))).toMatchObject({
      allowed: false,
      status: { code: 500 },
    });
    expect(answerOf(await post(review({ size: 14 }))).allowed).toBe(true);
    expect({ codes, panics }).toEqual({ codes: [200, 200], panics: 1 });
  });

  it('504 in due form before the API server gives up', async () => {
    const { post } = await running({ validate: () => new Promise(() => {}) });
    const began = performance.now();
    expect(answerOf(await post(review(), { path: `${VALIDATE}?timeout=1s` }))).toMatchObject({
      allowed: false,
      status: { code: 504 },
    });
    expect(performance.now() - began).toBeLessThan(1_000);
  });

  it('of kinds that came later', async () => {
    const { post, server } = await running({}, { kinds: [] });
    expect((await post(review())).code).toBe(404);
    server.replaceKinds([webhookKind(boxes)]);
    expect((await post(review())).code).toBe(200);
  });
});

describe('limits', () => {
  it('10 MB are answered with 413, whether announced or not', async () => {
    const { post, url, agent } = await running();
    const large = review({ items: [{ name: 'x'.repeat(10 * 1024 * 1024) }] });
    expect((await post(large)).code).toBe(413);
    const chunked = await request(`${url}${VALIDATE}`, {
      dispatcher: agent,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: (function* () {
        for (let chunk = 0; chunk < 160; chunk++) yield Buffer.alloc(64 * 1024, 'x');
      })() as unknown as Buffer,
    });
    expect(chunked.statusCode).toBe(413);
    expect((await post(review())).code).toBe(200);
  });

  it('what is announced as far too large is not even read', async () => {
    const { url, certificate, server } = await running();
    const socket = await secure(server.port, certificate.ca);
    socket.write(
      `POST ${VALIDATE} HTTP/1.1\r\nhost: ${new URL(url).host}\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n`,
    );
    expect(await textOf(socket)).toMatch(/^HTTP\/1\.1 413 [\s\S]*connection: close/i);
  });

  it('bodies that together take too much memory wait for another time', async () => {
    const gate = Promise.withResolvers<readonly []>();
    const { post } = await running(
      { validate: () => gate.promise },
      { limits: { bufferedBytes: 1_000_000 } },
    );
    const big = review({ items: [{ name: 'x'.repeat(600_000) }] });
    const first = post(big);
    // The second is refused only while the first is in memory.
    await expect.poll(async () => (await post(big)).code, { timeout: 5_000 }).toBe(503);
    gate.resolve([]);
    expect((await first).code).toBe(200);
    expect((await post(big)).code).toBe(200);
  });

  it.each([
    ['headers', `POST ${VALIDATE} HTTP/1.1\r\nhost: x\r\n`, 'x-slow: 1\r\n'],
    [
      'a body',
      `POST ${VALIDATE} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n`,
      ' ',
    ],
    ['a body for nobody', 'POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n', ' '],
  ])('a client that drips %s is cut off, others are served meanwhile', async (_, start, drip) => {
    const { post, server, certificate } = await running({}, { limits: { headersMs: 400, requestMs: 800 } });
    const sockets = await Promise.all(Array.from({ length: 20 }, () => secure(server.port, certificate.ca)));
    const dripping = sockets.map((socket) => {
      socket.write(start);
      const timer = setInterval(() => socket.write(drip), 50);
      socket.on('close', () => clearInterval(timer));
      return textOf(socket);
    });
    expect((await post(review())).code).toBe(200);
    for (const text of await Promise.all(dripping)) expect(text === '' || text.includes(' 408 ')).toBe(true);
    expect((await post(review())).code).toBe(200);
  });

  it('a client that never finishes its handshake is cut off', async () => {
    const { post, server } = await running({}, { limits: { handshakeMs: 300 } });
    const { connect: connectTcp } = await import('node:net');
    const socket = connectTcp(server.port, '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'close');
    expect((await post(review())).code).toBe(200);
  });

  it('connections beyond the limit are dropped, and make room when they go', async () => {
    const { server, certificate, post } = await running({}, { limits: { connections: 5 } });
    const held = await Promise.all(Array.from({ length: 5 }, () => secure(server.port, certificate.ca)));
    await expect(secure(server.port, certificate.ca)).rejects.toThrow(/socket|ECONNRESET/);
    for (const socket of held) socket.destroy();
    await expect
      .poll(() =>
        post(review()).then(
          ({ code }) => code,
          () => 0,
        ),
      )
      .toBe(200);
  });

  it.each([
    'rubbish\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    `POST ${VALIDATE} HTTP/1.1\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`,
  ])('rubbish instead of HTTP is answered and ended (%#)', async (rubbish) => {
    const { server, certificate, post } = await running();
    const socket = await secure(server.port, certificate.ca);
    socket.write(rubbish);
    expect(await textOf(socket)).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect((await post(review())).code).toBe(200);
  });

  it('does not speak old TLS', async () => {
    const { server, certificate } = await running();
    const old = connect({
      host: '127.0.0.1',
      port: server.port,
      ca: certificate.ca,
      maxVersion: 'TLSv1.1',
      minVersion: 'TLSv1',
    });
    await expect(once(old, 'secureConnect')).rejects.toThrow(/protocol|alert|version/i);
  });
});

describe('the certificate', () => {
  it('is changed for new connections while old ones go on', async () => {
    const { post, certificate, server } = await running();
    const old = await secure(server.port, certificate.ca);
    const first = old.getPeerCertificate().fingerprint256;
    const next = await renewed(undefined, settings, Date.now());
    certificate.change(next.serving);
    const fresh = await secure(server.port, next.authorities.join(''));
    expect(fresh.getPeerCertificate().fingerprint256).not.toBe(first);
    fresh.destroy();
    old.write(`GET /nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    expect(await textOf(old)).toContain('404');
    await expect(post(review())).rejects.toThrow('certificate');
  });

  it('that is not usable is not taken', async () => {
    const { post, certificate } = await running();
    certificate.change({ certPem: 'x', keyPem: 'y' });
    expect((await post(review())).code).toBe(200);
  });
});

describe('stop', () => {
  it('lets requests under way finish and takes no new ones', async () => {
    const gate = Promise.withResolvers<readonly []>();
    const entered = Promise.withResolvers<void>();
    const { post, server } = await running({
      validate() {
        entered.resolve();
        return gate.promise;
      },
    });
    const underWay = post(review());
    await entered.promise;
    const stopped = server.stop();
    await expect(post(review())).rejects.toThrow(/ECONNREFUSED|closed/);
    gate.resolve([]);
    expect((await underWay).code).toBe(200);
    await stopped;
    await server.stop();
  });

  it('does not wait for connections that were opened in advance, nor for idle ones', async () => {
    const { post, server, certificate } = await running();
    await post(review());
    const socket = await secure(server.port, certificate.ca);
    const closed = once(socket, 'close');
    const began = performance.now();
    await server.stop();
    await closed;
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  it('does not wait for ever', async () => {
    const entered = Promise.withResolvers<void>();
    const { post, server } = await running(
      {
        validate() {
          entered.resolve();
          return new Promise(() => {});
        },
      },
      { limits: { drainMs: 200 } },
    );
    const underWay = post(review()).catch((error: unknown) => error);
    await entered.promise;
    await server.stop();
    expect(await underWay).toBeInstanceOf(Error);
  });

  it('tells why it could not start', async () => {
    const { server } = await running();
    await expect(running({}, { port: server.port })).rejects.toThrow('EADDRINUSE');
  });
});

describe('fuzz', () => {
  it('every one of thousands of mutated reviews gets a proper answer', async () => {
    const { post } = await running({
      defaults: (object) => ({ ...object, spec: { ...object.spec, size: object.spec.size + 0 } }),
      validate: (object) =>
        (object.spec.items ?? []).map(({ name }, index) => ({
          path: `spec.items[${index}]`,
          message: name.trim(),
        })),
    });
    const random = generator(20261118);
    const counts = new Map<number, number>();
    const one = async (): Promise<void> => {
      const answer = await post(mutatedReview(random), { path: random(2) === 0 ? VALIDATE : MUTATE });
      counts.set(answer.code, (counts.get(answer.code) ?? 0) + 1);
      if (answer.code === 400) return;
      expect(answer.code).toBe(200);
      const response = answerOf(answer);
      expect(typeof response.uid).toBe('string');
      expect(typeof response.allowed).toBe('boolean');
    };
    for (let batch = 0; batch < 250; batch++) await Promise.all(Array.from({ length: 16 }, one));
    expect(counts.get(200)).toBeGreaterThan(1_000);
    expect(counts.get(400)).toBeGreaterThan(500);
    expect(answerOf(await post(review({ size: 1 }))).allowed).toBe(true);
  }, 60_000);

  it.each<readonly [name: string, body: string]>([
    ['deep lists', review().replace('"spec":{}', `"spec":${'['.repeat(100_000)}${']'.repeat(100_000)}`)],
    [
      'deep objects',
      review().replace('"spec":{}', `"spec":{"items":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`),
    ],
    ['many items', review({ items: Array.from({ length: 100_000 }, () => ({ name: 'a' })) })],
    ['many faults', review({ items: Array.from({ length: 100_000 }, () => ({ name: 1 })) })],
    [
      '__proto__',
      review().replace('"spec":{}', '"spec":{"__proto__":{"size":0},"constructor":{"prototype":{"x":1}}}'),
    ],
    ['duplicate keys', review().replace('"spec":{}', '"spec":{"size":1},"spec":{"size":0}')],
    ['huge numbers', review().replace('"spec":{}', '"spec":{"size":1e999}')],
  ])('%s', async (_, body) => {
    const { post } = await running();
    for (const path of [VALIDATE, MUTATE]) {
      const answer = await post(body, { path });
      expect(answer.code).toBe(200);
      expect(typeof answerOf(answer).allowed).toBe('boolean');
    }
    expect(({} as { size?: unknown }).size).toBeUndefined();
  });
});

type Random = (below: number) => number;

function generator(seed: number): Random {
  let state = seed;
  return (below) => (state = (state * 48271) % 2147483647) % below;
}

const ODD: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  '',
  'x',
  [],
  {},
  [null],
  { a: 1 },
  'CREATE',
  'UPDATE',
  'DELETE',
  '\u0000',
];

function mutatedReview(random: Random): Buffer {
  const text = review({ size: random(3), items: [{ name: 'a' }, { name: 'b' }] }, `u${random(1000)}`);
  const kind = random(4);
  if (kind === 0) {
    // Bytes.
    const bytes = Buffer.from(text);
    for (let flip = 0; flip <= random(4); flip++) bytes[random(bytes.length)] = random(256);
    return bytes;
  }
  if (kind === 1) return Buffer.from(text.slice(0, random(text.length)));
  // Values of other types anywhere, or nothing.
  const tree: unknown = JSON.parse(text);
  for (let change = 0; change <= random(3); change++) replaceSomewhere(tree, random);
  return Buffer.from(JSON.stringify(tree));
}

function replaceSomewhere(tree: unknown, random: Random): void {
  let node = tree as Record<string, unknown>;
  for (;;) {
    const keys = Object.keys(node);
    const key = keys[random(Math.max(1, keys.length))];
    if (key === undefined) return;
    const child = node[key];
    if (typeof child === 'object' && child !== null && random(4) > 0) {
      node = child as Record<string, unknown>;
      continue;
    }
    if (random(4) === 0) delete node[key];
    else node[key] = structuredClone(ODD[random(ODD.length)]);
    return;
  }
}

async function secure(port: number, ca: string): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, ca });
  cleanups.push(() => {
    socket.destroy();
  });
  await once(socket, 'secureConnect');
  socket.on('error', () => {});
  return socket;
}

/** Everything until the other side closes. */
async function textOf(socket: TLSSocket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  await new Promise<void>((resolve) => {
    socket.on('close', () => resolve());
  });
  return text;
}
