/** Pods on the virtual node, as their users see them. */
import { randomBytes } from 'node:crypto';
import { createConnection } from 'node:net';
import { describe, expect, inject, it } from 'vitest';
import { awaitDeletion, awaitObject } from '../../src/kube/await-object.ts';
import {
  configMaps,
  type Job,
  jobs,
  namespaces,
  type Pod,
  pods,
  secrets,
  serviceAccounts,
} from '../../src/kube/builtin-resources.ts';
import type { Stored } from '../../src/kube/resource-type.ts';
import { useCluster } from '../support/cluster.ts';
import { expectGone } from '../support/processes.ts';

const cluster = useCluster();
const { admin } = cluster;
const TIMEOUT = { timeoutMs: 20_000 };

type PodSpec = NonNullable<Pod['spec']>;
type Container = PodSpec['containers'][number];
type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];

const shell = (script: string, more: Partial<Container> = {}): Container => ({
  name: 'main',
  image: 'process',
  command: ['sh', '-c', script],
  ...more,
});

async function createPod(
  namespace: string,
  spec: PodSpec,
  metadata: Pod['metadata'] = {},
): Promise<Stored<Pod>> {
  return admin.create(pods, { metadata: { namespace, name: 'pod', ...metadata }, spec });
}

function podUntil(
  { metadata }: Pick<Stored<Pod>, 'metadata'>,
  until: string,
  satisfied: (pod: Stored<Pod>) => boolean,
): Promise<Stored<Pod>> {
  return awaitObject(admin, pods, metadata, satisfied, { ...TIMEOUT, until });
}

const inPhase = (phase: string) => (pod: Pod) => pod.status?.phase === phase;
const main = (pod: Pod): ContainerStatus | undefined => pod.status?.containerStatuses?.[0];
const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
const waitsFor = (reason: string) => (pod: Pod) => main(pod)?.state?.waiting?.reason === reason;

async function runJob(
  namespace: string,
  name: string,
  container: Container,
  spec: object = {},
): Promise<Stored<Job>> {
  const template = { spec: { restartPolicy: 'Never', containers: [container] } };
  await admin.create(jobs, { metadata: { name, namespace }, spec: { template, ...spec } });
  return awaitObject(
    admin,
    jobs,
    { name, namespace },
    (job) =>
      job.status?.conditions?.some(
        ({ type, status }) => /^(Complete|Failed)$/.test(type) && status === 'True',
      ) ?? false,
    { ...TIMEOUT, until: 'to end' },
  );
}

describe.concurrent('a Job', () => {
  it('runs its command to success, and its output can be read', async () => {
    const namespace = await cluster.namespace();
    const job = await runJob(
      namespace,
      'hello',
      shell('echo hello from $HOSTNAME; echo and >&2; printf unfinished'),
    );
    expect(job.status).toMatchObject({
      succeeded: 1,
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'Complete' })]),
    });
    const { stdout } = await cluster.kubectl('-n', namespace, 'logs', 'job/hello');
    expect(stdout.split('\n').toSorted().slice(0, 4)).toEqual([
      '',
      'and',
      expect.stringMatching(/^hello from hello-/),
      'unfinished',
    ]);
  });

  it('that fails with exit code 3 says so', async () => {
    const namespace = await cluster.namespace();
    const job = await runJob(namespace, 'broken', shell('exit 3'), { backoffLimit: 0 });
    expect(job.status).toMatchObject({ failed: 1 });
    const { items } = await admin.list(pods, { namespace, labelSelector: 'job-name=broken' });
    expect(items.map((pod) => [pod.status?.phase, main(pod)?.state?.terminated])).toEqual([
      ['Failed', expect.objectContaining({ exitCode: 3, reason: 'Error' })],
    ]);
    expect((await cluster.kubectl('-n', namespace, 'get', 'pods')).stdout).toMatch(
      /broken-\S+\s+0\/1\s+Error/,
    );
  });

  it('has the identity of its service account, and no other', async () => {
    const namespace = await cluster.namespace();
    const whoami = { name: 'main', image: 'process', command: [inject('cluster').kubectl, 'auth', 'whoami'] };
    await runJob(namespace, 'whoami', whoami);
    const { stdout } = await cluster.kubectl('-n', namespace, 'logs', 'job/whoami');
    expect(stdout).toContain(`system:serviceaccount:${namespace}:default`);
  });
});

describe.concurrent('a container that ends', () => {
  it('is restarted by restartPolicy Always, with ever longer pauses', async () => {
    const pod = await createPod(await cluster.namespace(), { containers: [shell('echo run; exit 2')] });
    const waiting = await podUntil(pod, 'to be in back-off', waitsFor('CrashLoopBackOff'));
    expect(main(waiting)).toMatchObject({ restartCount: 1, lastState: { terminated: { exitCode: 2 } } });
    expect(waiting.status?.phase).toBe('Running');
    const again = await podUntil(
      pod,
      'to have restarted twice',
      (now) => (main(now)?.restartCount ?? 0) >= 2,
    );
    expect(main(again)?.lastState?.terminated?.exitCode).toBe(2);
    const previous = await cluster.kubectl('-n', pod.metadata.namespace ?? '', 'logs', 'pod', '--previous');
    expect(previous.stdout).toBe('run\n');
  });

  it('is restarted by OnFailure until it succeeds', async () => {
    const marker = '$TASKFLOW_MOUNT_WORK/marker';
    const pod = await createPod(await cluster.namespace(), {
      restartPolicy: 'OnFailure',
      volumes: [{ name: 'work', emptyDir: {} }],
      containers: [
        shell(`test -e ${marker} && exit 0; touch ${marker}; exit 1`, {
          volumeMounts: [{ name: 'work', mountPath: '/work' }],
        }),
      ],
    });
    const done = await podUntil(pod, 'to succeed', inPhase('Succeeded'));
    expect(main(done)).toMatchObject({
      restartCount: 1,
      state: { terminated: { exitCode: 0, reason: 'Completed' } },
    });
  });

  it('by a signal shows 128 and its number', async () => {
    const spec = { restartPolicy: 'Never', containers: [shell('kill -KILL $$$$')] };
    const pod = await createPod(await cluster.namespace(), spec);
    const failed = await podUntil(pod, 'to fail', inPhase('Failed'));
    expect(main(failed)?.state?.terminated?.exitCode).toBe(137);
  });

  it('may leave a message', async () => {
    const spec = {
      restartPolicy: 'Never',
      containers: [shell('echo disk full > $TASKFLOW_TERMINATION_LOG; exit 1')],
    };
    const pod = await createPod(await cluster.namespace(), spec);
    const failed = await podUntil(pod, 'to fail', inPhase('Failed'));
    expect(main(failed)?.state?.terminated?.message).toBe('disk full\n');
  });
});

describe.concurrent('a container that cannot start', () => {
  it('for want of a command says so', async () => {
    const pod = await createPod(await cluster.namespace(), {
      containers: [{ name: 'main', image: 'process' }],
    });
    const waiting = await podUntil(pod, 'to say why', waitsFor('CreateContainerError'));
    expect(main(waiting)?.state?.waiting?.message).toContain('no command specified');
  });

  it('for want of the program says so', async () => {
    const container = { name: 'main', image: 'process', command: ['no-such-program'] };
    const pod = await createPod(await cluster.namespace(), {
      restartPolicy: 'Never',
      containers: [container],
    });
    const failed = await podUntil(pod, 'to fail', inPhase('Failed'));
    expect(main(failed)?.state?.terminated).toMatchObject({ exitCode: 128, reason: 'StartError' });
    expect(main(failed)?.state?.terminated?.message).toContain('executable file not found');
  });

  it('for want of a Secret starts when the Secret is there', async () => {
    const namespace = await cluster.namespace();
    const env = [{ name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'login', key: 'password' } } }];
    const container = shell('test "$PASSWORD" = s3cret', { env });
    const pod = await createPod(namespace, { restartPolicy: 'Never', containers: [container] });
    const waiting = await podUntil(pod, 'to wait', waitsFor('CreateContainerConfigError'));
    expect(main(waiting)?.state?.waiting?.message).toBe('secret "login" not found');
    await admin.create(secrets, {
      metadata: { namespace, name: 'login' },
      stringData: { password: 's3cret' },
    });
    await podUntil(pod, 'to succeed', inPhase('Succeeded'));
  });
});

describe.concurrent('init containers', () => {
  it('run in order before the main ones, beside sidecars that end after them', async () => {
    const mount = { volumeMounts: [{ name: 'work', mountPath: '/work' }] };
    const log = '>> $TASKFLOW_MOUNT_WORK/order';
    const pod = await createPod(await cluster.namespace(), {
      restartPolicy: 'Never',
      volumes: [{ name: 'work', emptyDir: {} }],
      initContainers: [
        shell(`sleep 0.1; echo first ${log}`, { name: 'first', ...mount }),
        shell(
          `trap 'echo sidecar ended; exit 0' TERM; echo sidecar ${log}; touch $TASKFLOW_MOUNT_WORK/up; while :; do sleep 0.05; done`,
          {
            name: 'sidecar',
            restartPolicy: 'Always',
            startupProbe: {
              exec: { command: ['sh', '-c', 'test -e $TASKFLOW_MOUNT_WORK/up'] },
              periodSeconds: 1,
            },
            ...mount,
          },
        ),
        shell(`echo second ${log}`, { name: 'second', ...mount }),
      ],
      containers: [shell(`echo main ${log}; cat $TASKFLOW_MOUNT_WORK/order`, mount)],
    });
    const done = await podUntil(pod, 'to succeed', inPhase('Succeeded'));
    const states = done.status?.initContainerStatuses?.map(({ name, state }) => [
      name,
      state?.terminated?.exitCode,
    ]);
    expect(states).toEqual([
      ['first', 0],
      ['sidecar', 0],
      ['second', 0],
    ]);
    const namespace = pod.metadata.namespace ?? '';
    expect((await cluster.kubectl('-n', namespace, 'logs', 'pod')).stdout).toBe(
      'first\nsidecar\nsecond\nmain\n',
    );
    expect((await cluster.kubectl('-n', namespace, 'logs', 'pod', '-c', 'sidecar')).stdout).toBe(
      'sidecar ended\n',
    );
  });

  it('that fail for good fail the Pod', async () => {
    const pod = await createPod(await cluster.namespace(), {
      restartPolicy: 'Never',
      initContainers: [shell('exit 4', { name: 'setup' })],
      containers: [shell('echo never')],
    });
    const failed = await podUntil(pod, 'to fail', inPhase('Failed'));
    expect(failed.status?.initContainerStatuses?.[0]?.state?.terminated?.exitCode).toBe(4);
    expect(main(failed)?.state?.waiting?.reason).toBe('PodInitializing');
  });
});

describe.concurrent('the environment of a container', () => {
  it('has values, references, the Pod itself and its files', async () => {
    const namespace = await cluster.namespace();
    await admin.create(configMaps, {
      metadata: { namespace, name: 'settings' },
      data: { COLOR: 'red', 'app.conf': 'x=1' },
    });
    await admin.create(secrets, {
      metadata: { namespace, name: 'login' },
      stringData: { password: 's3cret' },
    });
    const script = [
      'echo "$1 $GREETING $CM_COLOR $PASSWORD $POD $IP $CPU"',
      'cat $TASKFLOW_MOUNT_CONFIG/app.conf; echo',
      'cat password; echo; stat -c %a password . || stat -f %Lp password .',
      'cat $TASKFLOW_MOUNT_INFO/labels; echo',
      'test -s $TASKFLOW_SERVICE_ACCOUNT_DIR/token && echo token',
      'echo "outer: ${VITEST-none}"',
    ].join('\n');
    const pod = await createPod(
      namespace,
      {
        restartPolicy: 'Never',
        volumes: [
          { name: 'config', configMap: { name: 'settings' } },
          { name: 'login', secret: { secretName: 'login' } },
          {
            name: 'info',
            downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] },
          },
        ],
        containers: [
          {
            name: 'main',
            image: 'process/shell:1.0',
            command: ['sh', '-c', script, 'sh'],
            args: ['$(POD)-arg $$(POD)'],
            workingDir: '/login',
            resources: { limits: { cpu: '1500m' } },
            envFrom: [{ configMapRef: { name: 'settings' }, prefix: 'CM_' }],
            env: [
              { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
              { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
              { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
              { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'login', key: 'password' } } },
              { name: 'GREETING', value: 'hi $(POD)' },
            ],
            volumeMounts: [
              { name: 'config', mountPath: '/etc/app' },
              { name: 'login', mountPath: '/login' },
              { name: 'info', mountPath: '/info' },
            ],
          },
        ],
      },
      { labels: { app: 'web' } },
    );
    const done = await podUntil(pod, 'to succeed', inPhase('Succeeded'));
    const { stdout } = await cluster.kubectl('-n', namespace, 'logs', 'pod');
    expect(stdout.split('\n')).toEqual([
      `pod-arg $(POD) hi pod red s3cret pod ${done.status?.podIP} 1500`,
      'x=1',
      's3cret',
      '600',
      '700',
      'app="web"',
      'token',
      'outer: none',
      '',
    ]);
  });

  it('shows a changed ConfigMap in its volume', async () => {
    const namespace = await cluster.namespace();
    await admin.create(configMaps, { metadata: { namespace, name: 'settings' }, data: { color: 'red' } });
    const pod = await createPod(namespace, {
      restartPolicy: 'Never',
      volumes: [{ name: 'config', configMap: { name: 'settings' } }],
      containers: [
        shell('until grep -q blue $TASKFLOW_MOUNT_CONFIG/color; do sleep 0.05; done', {
          volumeMounts: [{ name: 'config', mountPath: '/etc/app' }],
        }),
      ],
    });
    await podUntil(pod, 'to run', inPhase('Running'));
    await admin.patch(
      configMaps,
      { namespace, name: 'settings' },
      { kind: 'merge', body: { data: { color: 'blue' } } },
    );
    const done = await podUntil(pod, 'to succeed', inPhase('Succeeded'));
    expect(main(done)?.restartCount).toBe(0);
  });
});

describe.concurrent('logs', () => {
  it('are followed to the end of the container', async () => {
    const namespace = await cluster.namespace();
    await admin.create(configMaps, { metadata: { namespace, name: 'go' }, data: { on: 'no' } });
    const pod = await createPod(namespace, {
      restartPolicy: 'Never',
      volumes: [{ name: 'go', configMap: { name: 'go' } }],
      containers: [
        shell('echo one; until grep -q yes $TASKFLOW_MOUNT_GO/on; do sleep 0.05; done; echo two', {
          volumeMounts: [{ name: 'go', mountPath: '/go' }],
        }),
      ],
    });
    await podUntil(pod, 'to run', inPhase('Running'));
    const followed = cluster.kubectl('-n', namespace, 'logs', '-f', 'pod');
    await admin.patch(
      configMaps,
      { namespace, name: 'go' },
      { kind: 'merge', body: { data: { on: 'yes' } } },
    );
    expect(await followed).toMatchObject({ exitCode: 0, stdout: 'one\ntwo\n' });
  });

  it('can be cut by lines, bytes and time, and show times', async () => {
    const namespace = await cluster.namespace();
    const pod = await createPod(namespace, { restartPolicy: 'Never', containers: [shell('seq 1 100')] });
    await podUntil(pod, 'to succeed', inPhase('Succeeded'));
    const logs = async (...args: string[]): Promise<string> =>
      (await cluster.kubectl('-n', namespace, 'logs', 'pod', ...args)).stdout;
    expect(await logs('--tail=2')).toBe('99\n100\n');
    expect(await logs('--limit-bytes=3')).toBe('1\n2');
    expect((await logs('--since=1h')).split('\n')).toHaveLength(101);
    expect(await logs('--since-time=2999-01-01T00:00:00Z')).toBe('');
    expect(await logs('--timestamps', '--tail=1')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z 100\n$/);
    const previous = await cluster.kubectl('-n', namespace, 'logs', 'pod', '--previous');
    expect(previous.stderr).toContain('previous terminated container "main" in pod "pod" not found');
  });

  it('of a container that has not started say why there are none', async () => {
    const pod = await createPod(await cluster.namespace(), {
      containers: [{ name: 'main', image: 'process' }],
    });
    await podUntil(pod, 'to wait', waitsFor('CreateContainerError'));
    const { stderr } = await cluster.kubectl('-n', pod.metadata.namespace ?? '', 'logs', 'pod');
    expect(stderr).toContain('container "main" in pod "pod" is waiting to start: CreateContainerError');
  });

  it('are all there is: exec says what to do instead', async () => {
    const pod = await createPod(await cluster.namespace(), {
      containers: [{ name: 'main', image: 'nginx' }],
    });
    await podUntil(pod, 'to be Ready', isReady);
    const { stderr } = await cluster.kubectl('-n', pod.metadata.namespace ?? '', 'exec', 'pod', '--', 'ls');
    expect(stderr).toContain('the virtual node has no exec');
  });
});

describe.concurrent('a Pod that is deleted', () => {
  /** `$$$$` is what Kubernetes makes `$$` from, and that the shell makes its pid from. */
  const ignoringTerm = `trap '' TERM; echo $$$$; touch up; while :; do sleep 0.05; done`;
  const readinessProbe = { exec: { command: ['test', '-e', 'up'] }, periodSeconds: 1 };
  const held = { finalizers: ['example.com/hold'] };

  async function letGo(pod: Stored<Pod>): Promise<void> {
    await admin.patch(pods, pod.metadata, { kind: 'merge', body: { metadata: { finalizers: null } } });
    await awaitDeletion(admin, pods, pod.metadata, TIMEOUT);
  }

  async function pidOf(pod: Stored<Pod>): Promise<number> {
    await podUntil(pod, 'to be Ready', isReady);
    const { stdout } = await cluster.kubectl('-n', pod.metadata.namespace ?? '', 'logs', pod.metadata.name);
    const pid = Number.parseInt(stdout, 10);
    expect(pid).toBeGreaterThan(1);
    return pid;
  }

  it('gets time to end in good order', async () => {
    const namespace = await cluster.namespace();
    const script = `trap 'echo bye; exit 0' TERM; echo ready; touch up; while :; do sleep 0.05; done`;
    const lifecycle = {
      preStop: { exec: { command: ['sh', '-c', 'echo hook > $TASKFLOW_TERMINATION_LOG'] } },
    };
    const pod = await createPod(
      namespace,
      { containers: [shell(script, { readinessProbe, lifecycle })] },
      held,
    );
    await podUntil(pod, 'to be Ready', isReady);
    await admin.delete(pods, pod.metadata);
    const ended = await podUntil(pod, 'to end', inPhase('Succeeded'));
    expect(main(ended)?.state?.terminated).toMatchObject({
      exitCode: 0,
      reason: 'Completed',
      message: 'hook\n',
    });
    expect((await cluster.kubectl('-n', namespace, 'logs', 'pod')).stdout).toBe('ready\nbye\n');
    await letGo(pod);
  });

  it('is killed when its time is over', async () => {
    const spec = { terminationGracePeriodSeconds: 1, containers: [shell(ignoringTerm, { readinessProbe })] };
    const pod = await createPod(await cluster.namespace(), spec, held);
    const pid = await pidOf(pod);
    await admin.delete(pods, pod.metadata);
    const ended = await podUntil(pod, 'to end', inPhase('Failed'));
    expect(main(ended)?.state?.terminated?.exitCode).toBe(137);
    await expectGone([pid]);
    await letGo(pod);
  });

  it('by force is killed at once', async () => {
    const pod = await createPod(await cluster.namespace(), {
      containers: [shell(ignoringTerm, { readinessProbe })],
    });
    const pid = await pidOf(pod);
    await admin.delete(pods, pod.metadata, { gracePeriodSeconds: 0 });
    await expectGone([pid]);
  });

  it('goes with its namespace', async () => {
    const namespace = `going-${randomBytes(4).toString('hex')}`;
    await admin.create(namespaces, { metadata: { name: namespace } });
    await awaitObject(admin, serviceAccounts, { namespace, name: 'default' }, () => true, {
      ...TIMEOUT,
      until: 'to be made',
    });
    const pod = await createPod(namespace, {
      terminationGracePeriodSeconds: 1,
      containers: [shell('exec sleep 60')],
    });
    await podUntil(pod, 'to be Ready', isReady);
    await admin.delete(namespaces, { name: namespace });
    await expect(awaitDeletion(admin, namespaces, { name: namespace }, TIMEOUT)).resolves.toBeUndefined();
  });
});

it.concurrent('a Pod that outlives its deadline fails', async () => {
  const pod = await createPod(await cluster.namespace(), {
    activeDeadlineSeconds: 1,
    containers: [shell('exec sleep 60')],
  });
  const failed = await podUntil(pod, 'to fail', inPhase('Failed'));
  expect(failed.status?.reason).toBe('DeadlineExceeded');
  expect(main(failed)?.state?.terminated?.exitCode).toBe(143);
});

it.concurrent('a Pod with a scheduling gate waits for it', async () => {
  const pod = await createPod(await cluster.namespace(), {
    schedulingGates: [{ name: 'example.com/quota' }],
    restartPolicy: 'Never',
    containers: [shell('true')],
  });
  const gated = await podUntil(
    pod,
    'to be gated',
    (now) => now.status?.conditions?.some(({ reason }) => reason === 'SchedulingGated') ?? false,
  );
  expect(gated.spec?.nodeName).toBeUndefined();
  await admin.patch(pods, pod.metadata, { kind: 'merge', body: { spec: { schedulingGates: null } } });
  await podUntil(pod, 'to succeed', inPhase('Succeeded'));
});

describe.concurrent('servers in Pods', () => {
  const server = `require('node:net').createServer((s) => s.on('error', () => {}).end(process.env.HOSTNAME)).listen(18080, process.env.IP)`;
  const serverPod = (namespace: string, name: string): Promise<Stored<Pod>> =>
    createPod(
      namespace,
      {
        containers: [
          {
            name: 'main',
            image: 'process',
            command: ['node', '-e', server],
            env: [{ name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
            ports: [{ name: 'tcp', containerPort: 18080 }],
            readinessProbe: { tcpSocket: { port: 'tcp' }, periodSeconds: 1 },
          },
        ],
      },
      { name },
    );

  it('listen on the same port, each on its address', async () => {
    const namespace = await cluster.namespace();
    const made = await Promise.all([serverPod(namespace, 'one'), serverPod(namespace, 'two')]);
    const ready = await Promise.all(made.map((pod) => podUntil(pod, 'to be Ready', isReady)));
    expect(await Promise.all(ready.map((pod) => answerOf(pod.status?.podIP ?? '')))).toEqual(['one', 'two']);
  });

  it('are ready when their probe says so, and no longer', async () => {
    const namespace = await cluster.namespace();
    const flag = '$TASKFLOW_MOUNT_FLAG/ready';
    await admin.create(configMaps, { metadata: { namespace, name: 'flag' }, data: {} });
    const pod = await createPod(namespace, {
      volumes: [{ name: 'flag', configMap: { name: 'flag' } }],
      containers: [
        shell('exec sleep 60', {
          readinessProbe: {
            exec: { command: ['sh', '-c', `test -e ${flag}`] },
            periodSeconds: 1,
            failureThreshold: 1,
          },
          volumeMounts: [{ name: 'flag', mountPath: '/flag' }],
        }),
      ],
    });
    const running = await podUntil(pod, 'to run', inPhase('Running'));
    expect(isReady(running)).toBe(false);
    const flagTo = (data: object): Promise<unknown> =>
      admin.patch(configMaps, { namespace, name: 'flag' }, { kind: 'merge', body: { data } });
    await flagTo({ ready: 'yes' });
    await podUntil(pod, 'to be Ready', isReady);
    await flagTo({ ready: null });
    await podUntil(pod, 'to be ready no more', (now) => !isReady(now));
  });

  it('are restarted when their liveness probe fails', async () => {
    const livenessProbe = { exec: { command: ['false'] }, periodSeconds: 1, failureThreshold: 1 };
    const spec = {
      terminationGracePeriodSeconds: 1,
      containers: [shell('exec sleep 60', { livenessProbe })],
    };
    const pod = await createPod(await cluster.namespace(), spec);
    const restarted = await podUntil(pod, 'to restart', (now) => (main(now)?.restartCount ?? 0) > 0);
    expect(main(restarted)?.lastState?.terminated?.exitCode).toBe(143);
  });
});

describe.concurrent('an image that is no process', () => {
  const pretended = (annotations: Record<string, string>, restartPolicy = 'Always'): Promise<Stored<Pod>> =>
    cluster
      .namespace()
      .then((namespace) =>
        createPod(
          namespace,
          { restartPolicy, containers: [{ name: 'main', image: 'nginx:1.27' }] },
          { annotations },
        ),
      );
  const annotate = (pod: Stored<Pod>, annotations: Record<string, string | null>): Promise<unknown> =>
    admin.patch(pods, pod.metadata, { kind: 'merge', body: { metadata: { annotations } } });

  it('is said to run until it is deleted', async () => {
    const pod = await pretended({});
    const running = await podUntil(pod, 'to be Ready', isReady);
    expect(main(running)?.state?.running).toBeDefined();
    await admin.delete(pods, pod.metadata);
    await awaitDeletion(admin, pods, pod.metadata, TIMEOUT);
  });

  it('ends when and how the Pod asks', async () => {
    const after = { 'virtual-node.taskflow.dev/complete-after': '100ms' };
    await podUntil(await pretended(after, 'Never'), 'to succeed', inPhase('Succeeded'));
    const failing = await pretended({ ...after, 'virtual-node.taskflow.dev/exit-code': '3' }, 'Never');
    expect(main(await podUntil(failing, 'to fail', inPhase('Failed')))?.state?.terminated?.exitCode).toBe(3);
  });

  it.each(['ImagePullBackOff', 'ErrImagePull', 'CreateContainerError'])(
    'fails with %s until the Pod asks no more',
    async (fail) => {
      const pod = await pretended({ 'virtual-node.taskflow.dev/fail': fail });
      const failing = await podUntil(pod, `to show ${fail}`, waitsFor(fail));
      expect(failing.status?.phase).toBe('Pending');
      await annotate(pod, { 'virtual-node.taskflow.dev/fail': null });
      await podUntil(pod, 'to be Ready', isReady);
    },
  );

  it('crashes while the Pod asks for it', async () => {
    const pod = await pretended({});
    await podUntil(pod, 'to be Ready', isReady);
    await annotate(pod, { 'virtual-node.taskflow.dev/fail': 'CrashLoopBackOff' });
    const crashing = await podUntil(pod, 'to be in back-off', waitsFor('CrashLoopBackOff'));
    expect(main(crashing)?.lastState?.terminated?.exitCode).toBe(1);
    expect(main(crashing)?.restartCount).toBeGreaterThan(0);
    await annotate(pod, { 'virtual-node.taskflow.dev/fail': null });
    await podUntil(pod, 'to be Ready', isReady);
  });
});

function answerOf(host: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let answer = '';
  createConnection({ host, port: 18080 })
    .setEncoding('utf8')
    .on('data', (text: string) => (answer += text))
    .on('end', () => resolve(answer))
    .on('error', reject);
  return promise;
}
