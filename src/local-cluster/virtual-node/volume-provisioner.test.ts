import { describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim } from '../../kube/builtin-resources.ts';
import type { Stored } from '../../kube/resource-type.ts';
import { isAsked, PROVISIONER, refusalOf, volumeFor } from './volume-provisioner.ts';

const claim = (
  spec: object = {},
  annotations: Record<string, string> = {},
): Stored<PersistentVolumeClaim> => ({
  metadata: { name: 'data', namespace: 'shop', uid: 'u-1', resourceVersion: '1', annotations },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '2Gi' } },
    storageClassName: 'c',
    ...spec,
  },
});

describe('a claim', () => {
  const asked = { 'volume.kubernetes.io/storage-provisioner': PROVISIONER };

  it('is served when the controller manager asks for it', () => {
    expect(isAsked(claim({}, asked), { provisioner: PROVISIONER, volumeBindingMode: 'Immediate' })).toBe(
      true,
    );
    expect(isAsked(claim(), { provisioner: PROVISIONER, volumeBindingMode: 'Immediate' })).toBe(false);
    expect(isAsked(claim({}, asked), { provisioner: 'example.com/other' })).toBe(false);
  });

  it('does not wait for a consumer: there is one node only', () => {
    expect(isAsked(claim(), { provisioner: PROVISIONER, volumeBindingMode: 'WaitForFirstConsumer' })).toBe(
      true,
    );
  });

  it('that a directory cannot serve is refused', () => {
    expect(refusalOf(claim())).toBeUndefined();
    expect(refusalOf(claim({ volumeMode: 'Block' }))).toContain('block volumes');
    expect(refusalOf(claim({ dataSource: { kind: 'VolumeSnapshot', name: 's' } }))).toContain('data sources');
  });

  it('gets a volume of its own', () => {
    expect(
      volumeFor(claim(), { provisioner: PROVISIONER, reclaimPolicy: 'Retain' }, 'pvc-u-1', '/v'),
    ).toMatchObject({
      metadata: { name: 'pvc-u-1', annotations: { 'pv.kubernetes.io/provisioned-by': PROVISIONER } },
      spec: {
        capacity: { storage: '2Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'c',
        persistentVolumeReclaimPolicy: 'Retain',
        hostPath: { path: '/v' },
        claimRef: { namespace: 'shop', name: 'data', uid: 'u-1' },
      },
    });
  });
});
