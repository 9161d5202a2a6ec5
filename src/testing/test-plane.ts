/** A control plane of a test's own: in a directory that goes with it, or with the process if that is killed. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from '../local-cluster/control-plane.ts';

export async function startTestPlane(
  options: Omit<ControlPlaneOptions, 'dir' | 'ephemeral'> = {},
): Promise<ControlPlane> {
  const dir = await mkdtemp(join(tmpdir(), 'taskflow-test-'));
  return startControlPlane({ durable: false, ...options, dir, ephemeral: true });
}
