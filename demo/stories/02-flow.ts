/** A kind of one's own, its flow watched live, and the operator killed in the middle of it. */
import { join } from 'node:path';
import { awaitObject } from '../../src/kube/await-object.ts';
import { defineResource, type KubeObject, type Stored } from '../../src/kube/resource-type.ts';
import type { OperationContext } from '../../src/taskflow/operation-context.ts';
import { startOperator } from '../../src/testing/index.ts';
import type { Story } from '../story.ts';

interface Rocket extends KubeObject {
  status?: { status?: string; operationContext?: OperationContext };
}

const NAMESPACE = 'default';
const PLUGIN = join(import.meta.dirname, '../kinds/rocket.ts');
const rockets = defineResource<Rocket>('demo.taskflow.dev/v1alpha1', 'Rocket', 'rockets', 'Namespaced');

const APOLLO = `apiVersion: demo.taskflow.dev/v1alpha1
kind: Rocket
metadata: {name: apollo, namespace: ${NAMESPACE}}
spec: {crew: [neil, buzz, michael]}
`;

const story: Story = {
  title: 'A flow of your own, and an operator that dies in it',
  async tell({ clusters: [cluster], kubectl, taskflow, say, signal }) {
    const until = (what: string, satisfied: (rocket: Stored<Rocket>) => boolean) =>
      awaitObject(cluster.admin, rockets, { namespace: NAMESPACE, name: 'apollo' }, satisfied, {
        timeoutMs: 30_000,
        until: what,
        signal,
      });

    say(
      'The operator runs with a kind from a file, demo/kinds/rocket.ts: a schema, a table of states, four tasks.',
    );
    await using operator = await startOperator({ plugins: [PLUGIN], cluster });
    await taskflow(['flows', '--plugin', PLUGIN]);

    say('A rocket is launched, and watched:');
    await kubectl(['apply', '-f', '-'], APOLLO);
    const watching = taskflow(['watch', 'rocket/apollo', '--namespace', NAMESPACE, '--until', 'flying']);
    watching.catch(() => {});
    await until(
      'to be fuelled',
      ({ status }) => Number(status?.operationContext?.checkpoint?.['step'] ?? 0) >= 4,
    );

    say(`Now the operator dies: kill -9 ${operator.pid ?? ''}`);
    await operator.kill();
    say('Another one takes over. The task that was interrupted goes on where it had saved its way:');
    await operator.restart();
    await watching;

    say('What happened, as kubectl tells it:');
    await kubectl(['get', 'rockets', '--namespace', NAMESPACE]);
    await taskflow(['history', 'rocket/apollo', '--namespace', NAMESPACE, '-o', 'wide']);
    await kubectl([
      'get',
      'events',
      '--namespace',
      NAMESPACE,
      '--field-selector',
      'involvedObject.name=apollo',
    ]);
    await kubectl(['delete', 'rocket', 'apollo', '--namespace', NAMESPACE]);
  },
};

export default story;
