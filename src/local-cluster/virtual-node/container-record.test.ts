import { describe, expect, it } from 'vitest';
import type { Pod } from '../../kube/builtin-resources.ts';
import { recoverRecords } from './container-record.ts';

const NOW = Date.parse('2026-01-01T00:01:00Z');
const startedAt = '2026-01-01T00:00:00Z';
const completed = { terminated: { exitCode: 0, reason: 'Completed', startedAt, finishedAt: startedAt } };

const status = (
  name: string,
  state: object,
  restartCount = 0,
): NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number] => ({
  name,
  state,
  restartCount,
  image: '',
  imageID: '',
  ready: false,
});

describe('a Pod found by a node that starts again', () => {
  it('has lost the processes that were running', () => {
    const pod: Pod = {
      spec: { containers: [{ name: 'c', image: 'process' }] },
      status: { containerStatuses: [status('c', { running: { startedAt } }, 2)] },
    };
    const [record] = recoverRecords(pod, () => 3, NOW);
    expect(record).toMatchObject({
      run: 2,
      state: { kind: 'terminated', exitCode: 137, reason: 'ContainerStatusUnknown', finishedAt: NOW },
    });
  });

  it('goes on with what was only pretended', () => {
    const pod: Pod = {
      spec: { containers: [{ name: 'c', image: 'nginx' }] },
      status: { containerStatuses: [status('c', { running: { startedAt } })] },
    };
    expect(recoverRecords(pod, () => 1, NOW)[0]?.state).toEqual({
      kind: 'running',
      startedAt: Date.parse(startedAt),
    });
  });

  it('keeps what had ended', () => {
    const pod: Pod = {
      spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'process' }] },
      status: { containerStatuses: [status('c', completed)] },
    };
    expect(recoverRecords(pod, () => 1, NOW)[0]?.state).toMatchObject({ kind: 'terminated', exitCode: 0 });
  });

  it('knows by the log of a start that no status tells of', () => {
    const pod: Pod = { spec: { containers: [{ name: 'c', image: 'process' }] }, status: {} };
    expect(recoverRecords(pod, () => 1, NOW)[0]).toMatchObject({
      run: 0,
      state: { reason: 'ContainerStatusUnknown' },
    });
    const restarted: Pod = {
      ...pod,
      status: {
        containerStatuses: [status('c', { terminated: { exitCode: 1, startedAt, finishedAt: startedAt } })],
      },
    };
    expect(recoverRecords(restarted, () => 2, NOW)[0]).toMatchObject({
      run: 1,
      state: { reason: 'ContainerStatusUnknown' },
      last: { exitCode: 1 },
    });
  });

  it('does the work of its init containers anew', () => {
    const pod: Pod = {
      spec: {
        initContainers: [{ name: 'i', image: 'process' }],
        containers: [{ name: 'c', image: 'process' }],
      },
      status: {
        initContainerStatuses: [status('i', completed)],
        containerStatuses: [status('c', { running: { startedAt } })],
      },
    };
    expect(recoverRecords(pod, () => 1, NOW)[0]).toMatchObject({
      state: { kind: 'waiting', reason: 'PodInitializing' },
      last: { exitCode: 0 },
    });
  });
});
