import { describe, expect, it } from 'vitest';
import { mountEnvironment, mountsOf, translatePath } from './mounts.ts';

const volumes = new Map([
  ['data', '/v/data'],
  ['kube-api-access-x1', '/v/token'],
]);

describe('mounts of a container', () => {
  const container = {
    name: 'c',
    volumeMounts: [
      { name: 'data', mountPath: '/var/lib/app', subPathExpr: 'pods/$(POD)' },
      { name: 'data', mountPath: '/backup', subPath: 'backup' },
      { name: 'kube-api-access-x1', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
    ],
  };
  const mounts = mountsOf(container, volumes, { POD: 'web-0' });

  it('are told by variables', () => {
    expect(mountEnvironment(mounts)).toEqual({
      TASKFLOW_MOUNT_DATA: '/v/data/pods/web-0',
      TASKFLOW_MOUNT_KUBE_API_ACCESS_X1: '/v/token',
      TASKFLOW_SERVICE_ACCOUNT_DIR: '/v/token',
    });
  });

  it.each([
    ['/var/lib/app', '/v/data/pods/web-0'],
    ['/var/lib/app/log/x', '/v/data/pods/web-0/log/x'],
    ['/backup/', '/v/data/backup'],
    ['/backups', undefined],
    ['/', undefined],
  ])('cover %s as %s', (path, expected) => expect(translatePath(path, mounts)).toBe(expected));

  it('do not leave their volume', () => {
    const outside = { name: 'c', volumeMounts: [{ name: 'data', mountPath: '/x', subPathExpr: '$(UP)' }] };
    expect(() => mountsOf(outside, volumes, { UP: '../other' })).toThrow('outside volume "data"');
    expect(() =>
      mountsOf({ name: 'c', volumeMounts: [{ name: 'no', mountPath: '/x' }] }, volumes, {}),
    ).toThrow('volumeMount "no" has no volume');
  });
});
