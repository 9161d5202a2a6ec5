/** Whether the event loop still turns: the one fault that no part of the process can report itself. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Check } from './health.ts';

const UNHEALTHY_AFTER_MS = 10_000;
const RESOLUTION_MS = 20;

/** A check for `/healthz`: the longest stall since it was last asked. */
export function eventLoopCheck(): { readonly check: Check; stop(): void } {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  return {
    check() {
      const stalledMs = Math.round(delay.max / 1e6);
      delay.reset();
      return stalledMs > UNHEALTHY_AFTER_MS ? `the event loop stood still for ${stalledMs} ms` : undefined;
    },
    stop: () => void delay.disable(),
  };
}
