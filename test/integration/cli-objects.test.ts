/** The commands of everyday users, on objects whose operator is played by the test. */
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { awaitObject } from '../../src/kube/await-object.ts';
import { configMaps, pods, secrets } from '../../src/kube/builtin-resources.ts';
import { EventRecorder } from '../../src/kube/event-recorder.ts';
import { ownerReferenceTo } from '../../src/kube/owner-references.ts';
import { resourceName, type Stored } from '../../src/kube/resource-type.ts';
import { customResourceDefinitions } from '../../src/kube/schema/crd.ts';
import { ago, condition, endedFlow, flow, storm } from '../fixtures/engine-objects.ts';
import { buoy, harbour, type Voyage, voyage } from '../fixtures/voyage.ts';
import { useCluster } from '../support/cluster.ts';
import { type Finished, runCommand, RunningCommand, TASKFLOW } from '../support/command.ts';
import { installCrd } from '../support/install-operator.ts';
import { createServiceAccount, requestToken } from '../support/service-account.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const cluster = useCluster();
const { admin } = cluster;
const KINDS = [voyage, harbour, buoy];
let namespace: string;

beforeAll(async () => {
  await Promise.all(KINDS.map((kind) => installCrd(admin, kind)));
  namespace = await cluster.namespace('cli');
});
afterAll(() =>
  Promise.all(KINDS.map((kind) => admin.delete(customResourceDefinitions, { name: resourceName(kind) }))),
);

function start(...args: string[]): RunningCommand {
  const env = { ...process.env, KUBECONFIG: cluster.kubeconfig };
  const command = new RunningCommand(process.execPath, [TASKFLOW, ...args, '-n', namespace], { env });
  onTestFinished(() => command[Symbol.asyncDispose]());
  return command;
}
const taskflow = (...args: string[]): Promise<Finished> => start(...args).finished;

const kubectl = (words: string) => cluster.kubectl('-n', namespace, ...words.split(' '));

const setStatus = (name: string, status: object) =>
  admin.patch(voyage, { name, namespace }, { kind: 'merge', body: { status } }, { subresource: 'status' });

async function createVoyage(name: string, status: object): Promise<Stored<Voyage>> {
  await admin.create(voyage, { metadata: { name, namespace }, spec: {} });
  return setStatus(name, status);
}

const untilAnnotated = (name: string, annotation: string): Promise<Stored<Voyage>> =>
  awaitObject(
    admin,
    voyage,
    { name, namespace },
    ({ metadata }) => metadata.annotations?.[annotation] !== undefined,
    {
      timeoutMs: 20_000,
      until: `to have ${annotation}`,
    },
  );

/** Takes the command off the object and answers, as the operator does. */
async function answer(
  object: Stored<Voyage>,
  annotation: string,
  reason: string,
  message: string,
): Promise<void> {
  await admin.patch(
    voyage,
    { name: object.metadata.name, namespace },
    { kind: 'merge', body: { metadata: { annotations: { [annotation]: null } } } },
  );
  const recorder = new EventRecorder({ client: admin, component: 'taskflow-operator' });
  recorder.event(object, 'Normal', reason, message);
  await recorder.stop();
}

describe('taskflow status', () => {
  it('tells where every object is, and everything about one', async () => {
    await createVoyage('told', { status: 'new', operationContext: flow({ lastError: storm() }) });
    await admin.create(harbour, { metadata: { name: 'told', namespace }, spec: {} });
    const all = await taskflow('status');
    expect(all.stdout).toMatch(/^KIND\/NAME +STATE +FLOW +TASK +STEP +ATTEMPT/);
    expect(all.stdout).toMatch(
      /^voyage\/told +new +sail +cross ocean +2\/3 +2 .* Storm: waves of ten metres$/m,
    );
    expect(all.stdout).toMatch(/^harbour\/told +- /m);

    const one = await taskflow('status', 'vy/told');
    expect(one.stdout).toContain('Flow         sail, step 2 of 3');
    expect(one.stdout).toMatch(/✔ load cargo .*\n.*● cross ocean .*\n.*○ unload cargo/);

    const json = await taskflow('status', 'Voyage', 'told', '-o', 'json');
    expect(JSON.parse(json.stdout)).toMatchObject({
      name: 'told',
      state: 'new',
      operationContext: { task: 'cross ocean' },
    });
  });

  it('also as a plugin of kubectl, in all namespaces', async () => {
    await createVoyage('everywhere', { status: 'arrived' });
    await using dir = await temporaryDirectory();
    await symlink(TASKFLOW, join(dir.path, 'kubectl-taskflow'));
    const env = {
      ...process.env,
      KUBECONFIG: cluster.kubeconfig,
      PATH: `${dir.path}:${process.env['PATH']}`,
    };
    const words = ['taskflow', 'status', 'voyages', '-A'];
    const { stdout } = await runCommand(inject('cluster').kubectl, words, { env });
    expect(stdout).toMatch(new RegExp(`^${namespace} +voyage/everywhere +arrived`, 'm'));
  });

  it.each([
    [['status', 'voiage'], 1, /no kind "voiage"; did you mean voyage\?[\s\S]*kubectl get crd/],
    [['status', 'vy/everywher'], 1, /there is no Voyage "everywher" in namespace .*; there are: everywhere/],
    [['history', 'cm/kube-root-ca.crt'], 1, /configmaps have no task flows/],
    [['tree'], 2, /missing required argument/],
    [['watch', 'vy', '--until', 'x'], 2, /are about one object/],
  ])('%j is an error that helps', async (args, exitCode, message) => {
    const result = await taskflow(...args);
    expect(result.stderr).toMatch(message);
    expect(result.exitCode).toBe(exitCode);
  });

  it('a kind of the category without flows is told apart', async () => {
    await admin.create(buoy, { metadata: { name: 'red', namespace }, spec: {} });
    expect((await taskflow('retry', 'buoy/red')).stderr).toMatch(/buoys.* have no task flows/);
  });
});

describe('taskflow tree', () => {
  it('shows what an object owns, and says once what may not be seen', async () => {
    const root = await createVoyage('root', { status: 'new', operationContext: flow() });
    const ownerReferences = [ownerReferenceTo(root)];
    const leg = await admin.create(voyage, {
      metadata: { name: 'leg', namespace, ownerReferences },
      spec: {},
    });
    await admin.create(secrets, { metadata: { name: 'code', namespace, ownerReferences } });
    await admin.create(configMaps, {
      metadata: { name: 'chart', namespace, ownerReferences: [ownerReferenceTo(leg)] },
    });
    await admin.create(pods, {
      metadata: { name: 'ship', namespace, ownerReferences },
      spec: { containers: [{ name: 'ship', image: 'none' }] },
    });
    const tree = await taskflow('tree', 'voyage/root');
    expect(tree.stderr).toBe('');
    expect(tree.stdout).toMatch(
      /^voyage\/root +new +sail 2\/3: cross ocean\n├─ voyage\/leg +-\n│ {2}└─ configmap\/chart\n├─ pod\/ship.*\n└─ secret\/code$/m,
    );

    // The role `view` has no right to Secrets.
    await createServiceAccount(admin, { name: 'viewer', namespace }, { clusterRole: 'view' });
    await kubectl('create role voyages --verb=get,list --resource=voyages.cli.test.taskflow.dev');
    await kubectl(`create rolebinding voyages --role=voyages --serviceaccount=${namespace}:viewer`);
    const seen = await asViewer('tree', 'voyage/root');
    expect(seen.stderr).toMatch(/^left out, since you may not list them: .*secrets/);
    expect(seen.stdout).toContain('configmap/chart');
    expect(seen.stdout).not.toContain('secret/code');
  });

  async function asViewer(...args: string[]): Promise<Finished> {
    const token = await requestToken(admin, { name: 'viewer', namespace });
    const view = await cluster.kubectl('config', 'view', '--raw', '-o', 'json');
    const config = JSON.parse(view.stdout) as { users: { user: object }[] };
    const [user] = config.users;
    if (user) user.user = { token };
    await using dir = await temporaryDirectory();
    const file = join(dir.path, 'kubeconfig');
    await writeFile(file, JSON.stringify(config));
    return await taskflow(...args, '--kubeconfig', file);
  }
});

describe('taskflow history', () => {
  it('lists flows from the newest, wide with their tasks', async () => {
    await createVoyage('old', {
      operationHistory: [
        endedFlow('b', { result: 'Failed', error: 'sunk' }),
        endedFlow('a', { finishedAt: ago(999) }),
      ],
    });
    expect((await taskflow('history', 'vy/old')).stdout).toMatch(/\nsail +Failed .* sunk\nsail +Succeeded/);
    expect((await taskflow('history', 'vy/old', '-o', 'wide')).stdout).toMatch(
      / {2}cross ocean +successful .*99s +3 attempts/,
    );
  });
});

describe('taskflow watch', () => {
  it('prints a line per change and ends with 0 in the wanted state', async () => {
    await createVoyage('wanted', { status: 'new', operationContext: flow() });
    const watch = start('watch', 'vy/wanted', '--until', 'arrived');
    await watch.untilPrinted(/voyage\/wanted {2}new {2}sail {2}2\/3 cross ocean/);
    await setStatus('wanted', { operationContext: { task: 'unload cargo', idx: 3 } });
    await watch.untilPrinted(/3\/3 unload cargo/);
    await setStatus('wanted', { status: 'arrived', operationContext: null });
    const { exitCode, stderr, stdout } = await watch.finished;
    expect(stderr).toContain('✔ voyage/wanted is arrived');
    expect(exitCode).toBe(0);
    expect(stdout.trimEnd().split('\n')).toHaveLength(3);
  });

  it('ends with 1 when the flow fails', async () => {
    await createVoyage('lost', { status: 'new', operationContext: flow() });
    const watch = start('watch', 'vy/lost', '--until-settled');
    await watch.untilPrinted(/voyage\/lost/);
    await setStatus('lost', {
      status: 'failed',
      operationContext: null,
      operationHistory: [endedFlow('x', { result: 'Failed', error: 'sunk' })],
    });
    const { exitCode, stderr } = await watch.finished;
    expect(stderr).toContain('✘ voyage/lost its flow "sail" has ended: Failed: sunk');
    expect(exitCode).toBe(1);
  });

  it('follows all objects of a kind until Ctrl-C, which is 130', async () => {
    const watch = start('watch', 'voyages', '-o', 'json');
    await createVoyage('late', { status: 'new' });
    await watch.untilPrinted(/"name":"late".*"state":"new"/);
    await admin.delete(voyage, { name: 'late', namespace });
    await watch.untilPrinted(/"name":"late".*"deleted":true/);
    watch.child.kill('SIGINT');
    expect((await watch.finished).exitCode).toBe(130);
  });
});

describe('steering', () => {
  it('retry: sets a new value under the name of the user and tells what the operator answered', async () => {
    const object = await createVoyage('retried', { status: 'failed' });
    await answer(object, 'taskflow.dev/retry', 'CommandAccepted', 'an older answer');
    const retry = start('retry', 'vy/retried');
    const asked = await untilAnnotated('retried', 'taskflow.dev/retry');
    expect(Date.parse(asked.metadata.annotations?.['taskflow.dev/retry'] ?? '')).toBeGreaterThan(0);
    const managers = await kubectl('get vy retried -o jsonpath={.metadata.managedFields[*].manager}');
    expect(managers.stdout).toContain('taskflow-cli-');
    await answer(asked, 'taskflow.dev/retry', 'CommandAccepted', 'retry: flow "sail" begins again');
    const { stdout, exitCode } = await retry.finished;
    expect(stdout).toBe('✔ voyage/retried: retry: flow "sail" begins again\n');
    expect(exitCode).toBe(0);
  });

  it('skip and cancel: name the current task and flow, and tell a refusal', async () => {
    await createVoyage('steered', { status: 'new', operationContext: flow() });
    const skip = start('skip', 'vy/steered');
    const toSkip = await untilAnnotated('steered', 'taskflow.dev/skip');
    expect(toSkip.metadata.annotations?.['taskflow.dev/skip']).toBe('cross ocean');
    await answer(toSkip, 'taskflow.dev/skip', 'CommandRefused', 'the current task is another one');
    const skipped = await skip.finished;
    expect(skipped.stderr).toContain('skipping task "cross ocean" of flow "sail"');
    expect(skipped.stderr).toContain(
      'error: voyage/steered: the operator refused: the current task is another one',
    );
    expect(skipped.exitCode).toBe(1);

    const cancel = start('cancel', 'vy/steered', '--annotation-domain', 'example.com');
    const toCancel = await untilAnnotated('steered', 'example.com/cancel');
    expect(toCancel.metadata.annotations?.['example.com/cancel']).toBe('flow-1');
    await answer(toCancel, 'example.com/cancel', 'CommandAccepted', 'cancel accepted');
    expect((await cancel.finished).exitCode).toBe(0);
  });

  it('pause and resume: wait for the condition', async () => {
    await createVoyage('paused', { status: 'new', operationContext: flow() });
    const pause = start('pause', 'vy', 'paused');
    await untilAnnotated('paused', 'taskflow.dev/pause-reconciling');
    await setStatus('paused', { conditions: [condition('Paused', 'True')] });
    expect((await pause.finished).stdout).toContain('task "cross ocean" still runs to its end');

    const resume = start('resume', 'vy', 'paused');
    await awaitObject(
      admin,
      voyage,
      { name: 'paused', namespace },
      ({ metadata }) => metadata.annotations?.['taskflow.dev/pause-reconciling'] === undefined,
      { timeoutMs: 20_000, until: 'to be resumed' },
    );
    await setStatus('paused', { conditions: [condition('Paused', 'False')] });
    expect((await resume.finished).stdout).toBe('✔ voyage/paused is no longer paused\n');
  });

  it('tells that nobody reacts, and how to look and take it back', async () => {
    await createVoyage('alone', { status: 'new' });
    const { stderr, exitCode } = await taskflow('reset', 'vy/alone', 'arrived', '--timeout', '300ms');
    expect(exitCode).toBe(1);
    expect(stderr).toContain('has not reacted to taskflow.dev/reset within 0.3 s');
    expect(stderr).toContain('get pods -l app.kubernetes.io/name=taskflow-operator');
    expect(stderr).toContain(`kubectl annotate -n ${namespace} voyage/alone taskflow.dev/reset-`);
    const sent = await taskflow('reset', 'vy/alone', 'new', '--no-wait');
    expect(sent.stdout).toBe('voyage/alone: taskflow.dev/reset is set\n');
  });
});
