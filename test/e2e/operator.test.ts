import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { awaitObject } from '../../src/kube/await-object.ts';
import { Invalid, NotFound } from '../../src/kube/errors.ts';
import type { RbacRule } from '../../src/kube/schema/rbac.ts';
import { type ControlPlane, startControlPlane } from '../../src/local-cluster/control-plane.ts';
import { freePorts } from '../../src/local-cluster/ports.ts';
import widgets from '../fixtures/widget/plugin.ts';
import { type Widget, widget } from '../fixtures/widget/schema.ts';
import { runKubectl } from '../support/cluster.ts';
import { taskflow } from '../support/command.ts';
import { installOperator } from '../support/install-operator.ts';
import { OperatorProcess } from '../support/operator.ts';
import { type TemporaryDirectory, temporaryDirectory } from '../support/temporary-directory.ts';

const PLUGIN = join(import.meta.dirname, '../fixtures/widget/plugin.ts');
const READY = { timeoutMs: 10_000, until: 'to be ready' };
const isReady = ({ status }: Widget): boolean => status?.status === 'ready';
/** As a user writes it: defaults are missing. */
const newWidget = (name: string, spec: object): Widget =>
  ({ metadata: { name, namespace: 'default' }, spec }) as unknown as Widget;

describe('taskflow run', () => {
  let dir: TemporaryDirectory;
  let plane: ControlPlane;

  beforeAll(async () => {
    dir = await temporaryDirectory();
    plane = await startControlPlane({ dir: dir.path, durable: false, virtualNode: false });
  });
  afterAll(async () => {
    await plane.stop();
    await dir[Symbol.asyncDispose]();
  });

  it('reconciles, admits, tells and stops, under the shipped roles', async () => {
    const [cluster] = plane.clusters;
    const [port = 0] = await freePorts(1);
    const access = await installOperator(cluster, [widgets]);
    await using operator = new OperatorProcess({
      ...access,
      plugin: PLUGIN,
      settings: {
        'webhooks.enabled': true,
        'webhooks.address': `127.0.0.1:${port}`,
        'webhooks.url': `https://127.0.0.1:${port}`,
        'debug.address': '127.0.0.1:0',
      },
    });
    await operator.untilLogged('operator runs');

    // The webhook's default and the controller's status.
    await cluster.admin.create(widget, newWidget('good', { replicas: 2 }));
    const good = await awaitObject(
      cluster.admin,
      widget,
      { name: 'good', namespace: 'default' },
      isReady,
      READY,
    );
    expect(good.spec.labels).toEqual({ maker: 'admin' });
    expect(good.status?.replicas).toBe(2);

    // All faults in one answer, and nothing stored.
    const bad = newWidget('bad', {
      size: 'large',
      delivery: { by: 'drone', pad: 3 },
      parts: [
        { name: 'a', count: 100 },
        { name: 'b', count: 100 },
      ],
    });
    const refusal = await cluster.admin.create(widget, bad).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(Invalid);
    expect((refusal as Invalid).causes.map(({ field }) => field)).toEqual([
      'spec.parts[1].count',
      'spec.delivery.by',
    ]);
    await expect(cluster.admin.get(widget, { name: 'bad', namespace: 'default' })).rejects.toThrow(NotFound);

    // What a user sees.
    const kubectl = (...args: string[]) => runKubectl(plane.binaries.paths.kubectl, cluster.kubeconfig, args);
    expect((await kubectl('get', 'wd')).stdout).toMatch(
      /^NAME\s+SIZE\s+STATUS\s+REPLICAS\s+AGE\ngood\s+medium\s+ready\s+2\s/,
    );
    expect((await kubectl('get', 'taskflow', '-o', 'name')).stdout).toContain(
      'widget.test.taskflow.dev/good',
    );

    // What a monitor sees.
    const portOf = (what: string) => operator.lines.find((line) => line['what'] === what)?.['port'];
    const get = async (what: string, path: string): Promise<string> =>
      (await fetch(`http://127.0.0.1:${String(portOf(what))}${path}`)).text();
    expect(await get('health', '/readyz?verbose')).toBe(
      '[+]api-server ok\n[+]caches ok\n[+]webhooks ok\nreadyz check passed\n',
    );
    expect(await get('health', '/healthz')).toBe('ok');
    const metrics = await get('metrics', '/metrics');
    for (const name of [
      'controller_runtime_reconcile_total{controller="widget",result="success"}',
      'controller_runtime_active_workers{controller="widget"}',
      'workqueue_depth{name="widget",controller="widget",priority="normal"}',
      'rest_client_requests_total{code="200",method="PATCH"',
      'leader_election_master_status{name="taskflow-operator"} 1',
      'controller_runtime_webhook_requests_total{webhook=',
      'taskflow_informer_synced{resource="widgets.test.taskflow.dev"} 1',
      'certwatcher_read_certificate_total',
    ])
      expect(metrics).toContain(name);
    expect(JSON.parse(await get('debug', '/debug/queues'))).toHaveProperty('widget.ready', []);

    operator.signal('SIGTERM');
    expect((await operator.finished).exitCode).toBe(0);
    const described = (await kubectl('describe', 'widget', 'good')).stdout;
    expect(described).toMatch(/Normal\s+Made\s.*taskflow-operator\s+the widget is ready/);
    await kubectl(
      'delete',
      'mutatingwebhookconfiguration,validatingwebhookconfiguration',
      'taskflow-operator',
    );
  });

  const without =
    (resource: string, verb: string) =>
    (rules: readonly RbacRule[]): readonly RbacRule[] =>
      rules.map((rule) =>
        rule.resources.includes(resource)
          ? { ...rule, verbs: rule.verbs.filter((each) => each !== verb) }
          : rule,
      );

  it.each([
    ['widgets/status', 'patch', 'reconcile failed'],
    ['widgets', 'watch', 'cache has trouble'],
    ['events', 'create', 'event was not recorded'],
    ['leases', 'create', 'leader election has trouble'],
  ])('needs %s %s: without it, it says what it may not do', async (resource, verb, message) => {
    const namespace = `less-${resource.replace('/', '-')}-${verb}`;
    const access = await installOperator(plane.clusters[0], [widgets], {
      namespace,
      adjustRules: without(resource, verb),
    });
    await plane.clusters[0].admin.create(widget, newWidget(namespace, { replicas: 1 }));
    await using operator = new OperatorProcess({ ...access, plugin: PLUGIN });
    const line = await operator.untilLogged(message);
    expect(line['errorType']).toBe('Forbidden');
    expect(line['error']).toContain(`cannot ${verb} resource`);
  });

  it('refuses a configuration that it does not understand, with exit code 2', async () => {
    const wrong = await taskflow(['run', '--set', 'log.verbosty=1', '--set', 'metrics.address=here']);
    expect(wrong.exitCode).toBe(2);
    expect(wrong.stderr).toContain('log.verbosty: no such setting; did you mean log.verbosity?');
  });

  it('tells of a plugin that cannot be loaded, and with --strict-plugins does not start', async () => {
    const strict = await taskflow(['run', '--plugin', './no-such-plugin.ts', '--strict-plugins']);
    expect(strict.exitCode).toBe(2);
    expect(strict.stderr).toContain('./no-such-plugin.ts');
  });

  it('engine #22: a plugin with a double flow name is refused, with both names', async () => {
    const refused = await taskflow([
      'run',
      '--plugin',
      join(import.meta.dirname, '../fixtures/double-flow.ts'),
    ]);
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain(
      'the flow "move" is defined twice: by Ship.double.test.taskflow.dev and by Plane.double.test.taskflow.dev',
    );
  });
});
