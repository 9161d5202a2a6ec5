/**
 * Where a container finds its volumes. Processes have no mount namespace of
 * their own, so a mount is not a path but a variable that holds one. Pure.
 */
import { join, posix, relative } from 'node:path';
import { type Environment, expand } from './environment.ts';
import type { Container } from './pod-spec.ts';

export interface MountedPath {
  readonly variable: string;
  /** Where the container expects it. */
  readonly mountPath: string;
  /** Where it is. */
  readonly path: string;
  /** The mount names a part of the volume, which is to be made if absent. */
  readonly isPart: boolean;
}

const SERVICE_ACCOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';

/** `TASKFLOW_MOUNT_DATA` for the volume `data`. */
export function mountVariable(volumeName: string): string {
  return `TASKFLOW_MOUNT_${volumeName.toUpperCase().replace(/[^A-Z0-9]/g, '_')}`;
}

export function mountsOf(
  container: Container,
  volumes: ReadonlyMap<string, string>,
  environment: Environment,
): MountedPath[] {
  return (container.volumeMounts ?? []).map(({ name, mountPath, subPath, subPathExpr }) => {
    const volume = volumes.get(name);
    if (volume === undefined) throw new Error(`volumeMount "${name}" has no volume`);
    const part = subPathExpr === undefined ? (subPath ?? '') : expand(subPathExpr, environment);
    const path = join(volume, part);
    if (relative(volume, path).startsWith('..'))
      throw new Error(`subPath "${part}" is outside volume "${name}"`);
    return { variable: mountVariable(name), mountPath, path, isPart: part !== '' };
  });
}

/** One variable a volume; the first mount counts where a volume is mounted twice. */
export function mountEnvironment(mounts: readonly MountedPath[]): Environment {
  const environment = Object.fromEntries(mounts.toReversed().map(({ variable, path }) => [variable, path]));
  const account = mounts.find(({ mountPath }) => mountPath === SERVICE_ACCOUNT_PATH);
  return account ? { ...environment, TASKFLOW_SERVICE_ACCOUNT_DIR: account.path } : environment;
}

/** The directory on this machine behind a path in the container, if a mount covers it. */
export function translatePath(path: string, mounts: readonly MountedPath[]): string | undefined {
  const [nearest] = mounts
    .flatMap((mount) => {
      const rest = posix.relative(mount.mountPath, path);
      return rest === '..' || rest.startsWith('../') ? [] : [{ mount, rest }];
    })
    .toSorted((one, other) => other.mount.mountPath.length - one.mount.mountPath.length);
  return nearest && join(nearest.mount.path, nearest.rest);
}
