/**
 * Startup, readiness and liveness probes of one run of a container. Each probe
 * is a loop of its own that ends with the run; readiness and liveness begin
 * when the startup probe has passed.
 */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { type Clock, systemClock } from '../../kube/clock.ts';
import type { Container, Probe } from './pod-spec.ts';

export interface ProbeTarget {
  readonly podIP: string;
  readonly exec: (argv: readonly string[], timeoutMs: number) => Promise<boolean>;
}

export interface ProbeEvents {
  /** The startup probe passed, or there is none. */
  onStarted(): void;
  onReady(ready: boolean): void;
  /** A liveness or startup probe failed for good. */
  onFailed(probe: Probe): void;
}

/** An action that tells by success or failure: of a probe, or of a lifecycle hook. */
export type Action = Pick<Probe, 'exec' | 'httpGet' | 'tcpSocket'>;

/** Until a container is ready for the first time, it is asked at least this often. */
const FIRST_READINESS_PERIOD_MS = 1000;

export function startProbes(
  container: Container,
  target: ProbeTarget,
  events: ProbeEvents,
  signal: AbortSignal,
  clock: Pick<Clock, 'sleep'> = systemClock,
): void {
  const { startupProbe, livenessProbe, readinessProbe } = container;
  const loop = (probe: Probe, report: (passing: boolean) => boolean, readiness = false): void => {
    const check = (): Promise<boolean> =>
      perform(probe, container, target, 1000 * (probe.timeoutSeconds ?? 1));
    void probeLoop({ probe, check, report, readiness, signal, clock });
  };
  const afterStart = (): void => {
    events.onStarted();
    if (readinessProbe) loop(readinessProbe, (passing) => (events.onReady(passing), true), true);
    else events.onReady(true);
    if (livenessProbe)
      loop(livenessProbe, (passing) => {
        if (!passing) events.onFailed(livenessProbe);
        return passing;
      });
  };
  if (!startupProbe) return afterStart();
  loop(startupProbe, (passing) => {
    if (passing) afterStart();
    else events.onFailed(startupProbe);
    return false;
  });
}

interface ProbeLoop {
  readonly probe: Probe;
  readonly check: () => Promise<boolean>;
  /** Told when a threshold is reached; the answer is whether to go on. */
  readonly report: (passing: boolean) => boolean;
  readonly readiness: boolean;
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, 'sleep'>;
}

async function probeLoop({ probe, check, report, readiness, signal, clock }: ProbeLoop): Promise<void> {
  const periodMs = 1000 * (probe.periodSeconds ?? 10);
  let reported: boolean | undefined;
  let streak = { passing: false, length: 0 };
  await clock.sleep(1000 * (probe.initialDelaySeconds ?? 0), signal);
  while (!signal.aborted) {
    const passing = await check();
    if (signal.aborted) return;
    streak = { passing, length: streak.passing === passing ? streak.length + 1 : 1 };
    const threshold = passing ? (probe.successThreshold ?? 1) : (probe.failureThreshold ?? 3);
    if (streak.length >= threshold && reported !== passing) {
      reported = passing;
      if (!report(passing)) return;
    }
    const waitsForFirst = readiness && reported !== true;
    await clock.sleep(waitsForFirst ? Math.min(periodMs, FIRST_READINESS_PERIOD_MS) : periodMs, signal);
  }
}

export async function perform(
  action: Action,
  container: Container,
  target: ProbeTarget,
  timeoutMs: number,
): Promise<boolean> {
  const { exec, httpGet, tcpSocket } = action;
  if (exec) return target.exec(exec.command ?? [], timeoutMs);
  if (tcpSocket)
    return tcpAnswers(tcpSocket.host ?? target.podIP, portNumber(tcpSocket.port, container), timeoutMs);
  if (httpGet) return httpAnswers(httpGet, target.podIP, portNumber(httpGet.port, container), timeoutMs);
  return false;
}

function portNumber(port: number | string, container: Container): number {
  if (typeof port === 'number') return port;
  const named = container.ports?.find(({ name }) => name === port);
  return named?.containerPort ?? Number(port);
}

function tcpAnswers(host: string, port: number, timeoutMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port, timeout: timeoutMs });
  socket.once('connect', () => resolve(true));
  socket.on('error', () => resolve(false));
  socket.once('timeout', () => resolve(false));
  return promise.finally(() => socket.destroy());
}

function httpAnswers(
  { host, path = '/', scheme = 'HTTP', httpHeaders = [] }: NonNullable<Action['httpGet']>,
  podIP: string,
  port: number,
  timeoutMs: number,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const options = {
    host: host ?? podIP,
    port,
    path,
    // A connection of its own: an idle one kept open would keep a server from ending.
    agent: false,
    headers: {
      'user-agent': 'kube-probe/virtual-node',
      connection: 'close',
      ...Object.fromEntries(httpHeaders.map(({ name, value }) => [name, value])),
    },
  };
  const request =
    scheme === 'HTTPS' ? httpsRequest({ ...options, rejectUnauthorized: false }) : httpRequest(options);
  request.once('response', ({ statusCode = 0 }) => resolve(statusCode >= 200 && statusCode < 400));
  // Also after the verdict: destroying the request may report one more error.
  request.on('error', () => resolve(false));
  // The whole exchange is bounded, not the silence within it.
  const timer = setTimeout(() => resolve(false), timeoutMs);
  request.end();
  return promise.finally(() => {
    clearTimeout(timer);
    request.destroy();
  });
}
