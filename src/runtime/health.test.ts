import { describe, expect, it } from 'vitest';
import { HealthChecks } from './health.ts';
import { parseAddress, serveEndpoints } from './http-endpoints.ts';

async function serve(checks: HealthChecks) {
  const server = await serveEndpoints({ host: '127.0.0.1', port: 0 }, checks.endpoints());
  const get = async (path: string, init?: RequestInit): Promise<[number, string]> => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, init);
    return [answer.status, await answer.text()];
  };
  return { get, stop: () => server.stop() };
}

describe('health endpoints', () => {
  it('say ok, tell each check when asked, and tell all when one fails', async () => {
    const checks = new HealthChecks();
    let fault: string | undefined;
    checks.addLive('event-loop', () => undefined);
    checks.addReady('caches', () => fault);
    checks.addReady('webhooks', () => Promise.resolve(undefined));
    const { get, stop } = await serve(checks);
    expect(await get('/healthz')).toEqual([200, 'ok']);
    expect(await get('/readyz')).toEqual([200, 'ok']);
    expect(await get('/readyz?verbose')).toEqual([
      200,
      '[+]caches ok\n[+]webhooks ok\nreadyz check passed\n',
    ]);
    fault = 'widgets not synced';
    expect(await get('/readyz')).toEqual([
      503,
      '[-]caches failed: widgets not synced\n[+]webhooks ok\nreadyz check failed\n',
    ]);
    expect(await checks.notReady()).toEqual(['caches: widgets not synced']);
    await stop();
  });

  it('a check that throws has failed; other paths and methods are refused', async () => {
    const checks = new HealthChecks();
    checks.addLive('broken', () => {
      throw new Error('cannot tell');
    });
    const { get, stop } = await serve(checks);
    expect(await get('/healthz')).toEqual([503, '[-]broken failed: cannot tell\nhealthz check failed\n']);
    expect((await get('/constructor'))[0]).toBe(404);
    expect((await get('/healthz', { method: 'POST' }))[0]).toBe(405);
    await stop();
  });
});

describe('addresses', () => {
  it.each([
    [':8081', { host: '0.0.0.0', port: 8081 }],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['[::1]:9000', { host: '::1', port: 9000 }],
    ['0', undefined],
    ['', undefined],
  ])('%j', (text, expected) => {
    expect(parseAddress(text)).toEqual(expected);
  });

  it.each(['here', ':http', ':70000'])('%j is none', (text) => {
    expect(() => parseAddress(text)).toThrow('is no address');
  });
});
