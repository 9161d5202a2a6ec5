import { describe, expect, it } from 'vitest';
import { nodeMetadata, nodeStatus } from './node-object.ts';
import { thousandths } from './quantity.ts';

describe('the Node object', () => {
  const identity = { name: 'virtual-node', kubeletPort: 10250 };

  it('says that it is a stand-in', () => {
    const { labels, annotations } = nodeMetadata(identity);
    expect(labels).toMatchObject({
      'kubernetes.io/hostname': 'virtual-node',
      'virtual-node.taskflow.dev/stand-in': 'true',
    });
    expect(Object.values(annotations ?? {}).join()).toContain('stand-in for a kubelet');
  });

  it('tells the machine and where its logs are served', () => {
    const status = nodeStatus(identity, 'boot', Date.parse('2026-01-01T00:00:00.999Z'));
    expect(status.daemonEndpoints?.kubeletEndpoint?.Port).toBe(10250);
    expect(status.capacity?.['pods']).toBe('200');
    expect(thousandths(status.capacity?.['cpu'] ?? '')).toBeGreaterThan(0n);
    expect(thousandths(status.capacity?.['memory'] ?? '')).toBeGreaterThan(0n);
    expect(status.addresses).toContainEqual({ type: 'InternalIP', address: '127.0.0.1' });
    expect(status.conditions?.map(({ type, status: value }) => `${type} ${value}`)).toEqual([
      'MemoryPressure False',
      'DiskPressure False',
      'PIDPressure False',
      'Ready True',
    ]);
    expect(status.conditions?.[0]?.lastHeartbeatTime).toBe('2026-01-01T00:00:00Z');
  });
});
