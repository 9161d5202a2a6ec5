/** A Job on the virtual node: the real Job controller, a real process, a real exit code. */
import { awaitObject } from '../../src/kube/await-object.ts';
import { jobs, type Job, type Pod, pods, serviceAccounts } from '../../src/kube/builtin-resources.ts';
import type { Stored } from '../../src/kube/resource-type.ts';
import type { Story } from '../story.ts';

const NAMESPACE = 'demo-job';

const COUNT_DOWN = `apiVersion: batch/v1
kind: Job
metadata: {name: count-down, namespace: ${NAMESPACE}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: process
          command: [/bin/sh, -c, 'for i in 3 2 1; do echo "$(date +%T) $i on $NODE"; sleep 1; done; echo lift-off']
          env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
`;

const FAILING = `apiVersion: batch/v1
kind: Job
metadata: {name: broken, namespace: ${NAMESPACE}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: process, command: [/bin/sh, -c, 'echo "cannot go on" >&2; exit 3']}
`;

const story: Story = {
  title: 'A Job on the virtual node',
  async tell({ clusters: [cluster], kubectl, say, signal }) {
    const within = { timeoutMs: 30_000, signal };
    await kubectl(['create', 'namespace', NAMESPACE]);
    await awaitObject(cluster.admin, serviceAccounts, { namespace: NAMESPACE, name: 'default' }, () => true, {
      ...within,
      until: 'to be made',
    });

    say('A Job whose container image is `process` runs its command as a process of this machine:');
    await kubectl(['apply', '-f', '-'], COUNT_DOWN);
    const podName = await podOf('count-down');
    await kubectl(['logs', '--follow', '--namespace', NAMESPACE, podName]);
    await awaitObject(cluster.admin, jobs, { namespace: NAMESPACE, name: 'count-down' }, hasEnded, {
      ...within,
      until: 'to end',
    });

    say('A process that ends with exit code 3 is a failed Pod and a failed Job:');
    await kubectl(['apply', '-f', '-'], FAILING);
    await awaitObject(cluster.admin, jobs, { namespace: NAMESPACE, name: 'broken' }, hasEnded, {
      ...within,
      until: 'to end',
    });
    await kubectl(['get', 'nodes,jobs,pods', '--namespace', NAMESPACE, '-o', 'wide']);
    await kubectl(['delete', 'namespace', NAMESPACE]);

    async function podOf(job: string): Promise<string> {
      const ref = { namespace: NAMESPACE, labelSelector: `job-name=${job}` };
      const started = (pod: Stored<Pod>): boolean => pod.status?.phase !== 'Pending';
      await awaitObject(
        cluster.admin,
        jobs,
        { namespace: NAMESPACE, name: job },
        (it) => it.status?.active === 1,
        {
          ...within,
          until: 'to have a Pod',
        },
      );
      const [pod] = (await cluster.admin.list(pods, ref)).items;
      const name = pod?.metadata.name ?? '';
      await awaitObject(cluster.admin, pods, { namespace: NAMESPACE, name }, started, {
        ...within,
        until: 'to run',
      });
      return name;
    }
  },
};

function hasEnded(job: Stored<Job>): boolean {
  return (job.status?.conditions ?? []).some(
    ({ type, status }) => status === 'True' && (type === 'Complete' || type === 'Failed'),
  );
}

export default story;
