/** The start of a local control plane as steps to show; `up` and the demo share it. */
import { findBinaries, type KubeBinaries } from '../local-cluster/binaries/find-binaries.ts';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  type PlaneEvent,
  startControlPlane,
} from '../local-cluster/control-plane.ts';
import type { Step } from './progress.ts';
import { seconds } from './terminal.ts';

const LOG_PROGRESS_EVERY_MS = 15_000;

export interface StartedPlane {
  plane?: ControlPlane;
}

/** The plane is put into `result` once the steps have run. */
export function startSteps(options: ControlPlaneOptions, result: StartedPlane): Step[] {
  let binaries: KubeBinaries | undefined;
  return [
    {
      title: 'Look for the Kubernetes programs',
      run: async (say) => {
        const report = seldomElsewhere((event) => say(describeEvent(event)));
        binaries = await findBinaries({ report, ...(options.signal && { signal: options.signal }) });
        return `Kubernetes ${binaries.version} from ${binaries.dir}`;
      },
    },
    {
      title: 'Start the control plane',
      run: async (say) => {
        const plane = await startControlPlane({
          ...options,
          ...(binaries && { binaries }),
          report: (event) => {
            options.report?.(event);
            say(describeEvent(event));
          },
        });
        result.plane = plane;
        const what = plane.clusters.length === 1 ? 'one cluster' : `${plane.clusters.length} clusters`;
        return `Control plane with ${what} ready in ${seconds(plane.startedInMs)}`;
      },
    },
  ];
}

/** A terminal shows progress in place; a log file would get a line a second. */
function seldomElsewhere(report: (event: PlaneEvent) => void): (event: PlaneEvent) => void {
  if (process.stdout.isTTY) return report;
  let last = -Infinity;
  return (event) => {
    const now = performance.now();
    if (event.type === 'progress' && now - last < LOG_PROGRESS_EVERY_MS) return;
    if (event.type === 'progress') last = now;
    report(event);
  };
}

export function describeEvent(event: PlaneEvent): string {
  switch (event.type) {
    case 'source-failed':
      return `not from ${event.source}: ${event.reason}`;
    case 'progress':
      return `${event.source}: ${event.message}`;
    case 'found':
      return `found in ${event.dir} (${event.source})`;
    case 'started':
      return `${event.what} ready after ${seconds(event.ms)}`;
    case 'warning':
      return event.message;
  }
}
