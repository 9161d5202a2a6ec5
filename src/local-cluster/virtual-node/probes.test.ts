import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Container } from './pod-spec.ts';
import { perform, startProbes } from './probes.ts';

/** Sleeps end when the test says so, and are recorded. */
function manualClock(): {
  slept: number[];
  tick: () => Promise<void>;
  clock: { sleep(ms: number): Promise<void> };
} {
  const slept: number[] = [];
  let wake: (() => void) | undefined;
  return {
    slept,
    async tick() {
      wake?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
    clock: {
      sleep: (ms) => {
        slept.push(ms);
        return new Promise((resolve) => (wake = resolve));
      },
    },
  };
}

function probed(
  container: Omit<Container, 'name'>,
  answers: boolean[],
): { events: string[]; tick: () => Promise<void>; slept: number[]; stop: () => void } {
  const events: string[] = [];
  const { clock, tick, slept } = manualClock();
  const stopping = new AbortController();
  startProbes(
    { name: 'c', ...container },
    { podIP: '127.0.0.1', exec: () => Promise.resolve(answers.shift() ?? false) },
    {
      onStarted: () => events.push('started'),
      onReady: (ready) => events.push(`ready ${ready}`),
      onFailed: () => events.push('failed'),
    },
    stopping.signal,
    clock,
  );
  return { events, tick, slept, stop: () => stopping.abort() };
}

const exec = { command: ['check'] };

describe('a container', () => {
  it('without probes is started and ready at once', () => {
    expect(probed({}, []).events).toEqual(['started', 'ready true']);
  });

  it('is ready while its readiness probe passes', async () => {
    const { events, tick, slept } = probed(
      { readinessProbe: { exec, periodSeconds: 5, initialDelaySeconds: 2, failureThreshold: 2 } },
      [false, true, false, false, true],
    );
    for (let step = 0; step < 5; step++) await tick();
    expect(events).toEqual(['started', 'ready true', 'ready false', 'ready true']);
    expect(slept).toEqual([2000, 1000, 5000, 5000, 1000, 5000]);
  });

  it('has failed when its liveness probe did often enough', async () => {
    const { events, tick } = probed({ livenessProbe: { exec, failureThreshold: 2 } }, [
      true,
      false,
      true,
      false,
      false,
    ]);
    for (let step = 0; step < 7; step++) await tick();
    expect(events).toEqual(['started', 'ready true', 'failed']);
  });

  it('is asked for its life and readiness only once it has started', async () => {
    const { events, tick } = probed({ startupProbe: { exec }, readinessProbe: { exec } }, [
      false,
      true,
      true,
    ]);
    await tick();
    expect(events).toEqual([]);
    await tick();
    expect(events).toEqual(['started']);
    await tick();
    expect(events).toEqual(['started', 'ready true']);
  });

  it('is asked no more after its end', async () => {
    const { events, tick, stop } = probed({ readinessProbe: { exec } }, [true]);
    stop();
    await tick();
    expect(events).toEqual(['started']);
  });
});

describe('a probe', () => {
  const server = createServer((request, response) => {
    response.statusCode = request.url === '/ok' ? 204 : 500;
    if (request.url !== '/slow') response.end();
  });
  afterEach(() => server.closeAllConnections());

  it('by TCP or HTTP asks the address of the Pod', async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const container = { name: 'c', ports: [{ name: 'web', containerPort: port }] };
    const target = { podIP: '127.0.0.1', exec: () => Promise.resolve(false) };
    const ask = (action: Parameters<typeof perform>[0]): Promise<boolean> =>
      perform(action, container, target, 200);
    expect(await ask({ tcpSocket: { port } })).toBe(true);
    expect(await ask({ httpGet: { port: 'web', path: '/ok' } })).toBe(true);
    expect(await ask({ httpGet: { port, path: '/broken' } })).toBe(false);
    expect(await ask({ httpGet: { port, path: '/slow' } })).toBe(false);
    await new Promise((resolve) => server.close(resolve));
    expect(await ask({ tcpSocket: { port } })).toBe(false);
    expect(await ask({ httpGet: { port, path: '/ok' } })).toBe(false);
    expect(await ask({})).toBe(false);
  });
});
