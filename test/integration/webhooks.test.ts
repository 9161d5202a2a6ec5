/** Admission as users meet it: through the real API server and kubectl. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configMaps } from '../../src/kube/builtin-resources.ts';
import { ApiError, Invalid, NotFound } from '../../src/kube/errors.ts';
import { type AdmissionContext, webhookKind, type WebhookRules } from '../../src/webhooks/rules.ts';
import { installWidget } from '../fixtures/widget/install.ts';
import { type Widget, widget } from '../fixtures/widget/schema.ts';
import { KEEP, widgetRules } from '../fixtures/widget/webhook.ts';
import { type Serving, serve, untilCalled } from '../fixtures/webhooks/serving.ts';
import { type KubectlResult, useCluster } from '../support/cluster.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const cluster = useCluster();
const { admin } = cluster;

function aWidget(namespace: string, name: string, spec: object = {}, metadata: object = {}): Widget {
  return { metadata: { namespace, name, ...metadata }, spec: spec as Widget['spec'] };
}

/** The rules add a label to everything that is made while they are asked. */
const isAsked = (namespace: string) => async (): Promise<boolean> => {
  const made = await admin.create(widget, aWidget(namespace, 'probe'), { dryRun: true });
  return made.spec.labels?.['maker'] !== undefined;
};

describe('a served kind', () => {
  let namespace: string;
  let serving: Serving;
  const seen: AdmissionContext<Widget>[] = [];
  const rules: WebhookRules<Widget> = {
    ...widgetRules,
    validate(object, context) {
      seen.push(context);
      return widgetRules.validate?.(object, context) ?? [];
    },
  };

  beforeAll(async () => {
    await installWidget(admin);
    namespace = await cluster.namespace('webhooks');
    serving = await serve({ client: admin, namespace, kinds: [webhookKind(widget, rules)] });
    await untilCalled(isAsked(namespace));
  });
  afterAll(() => serving[Symbol.asyncDispose]());

  it('gets the defaults that a CRD cannot give, and those of its rules', async () => {
    const made = await admin.create(
      widget,
      aWidget(namespace, 'defaults', {
        delivery: { by: 'post', address: 'Main Street 1' },
        parts: [{ name: 'a' }],
      }),
    );
    expect(made.spec).toEqual({
      size: 'medium',
      replicas: 1,
      maxUnavailable: '25%',
      timeout: '5m',
      cooling: { enabled: false },
      parts: [{ name: 'a', count: 1 }],
      delivery: { by: 'post', address: 'Main Street 1', express: false },
      labels: { maker: expect.any(String) as string },
    });
    const drone = await admin.create(
      widget,
      aWidget(namespace, 'drone', { delivery: { by: 'drone', pad: 1 } }),
    );
    expect(drone.spec.delivery).toEqual({ by: 'drone', pad: 1 });
  });

  const wrong = {
    size: 'small',
    parts: ['a', 'b', 'c', 'd'].map((name) => ({ name, count: 50 })),
    labels: { UPPER: 'x' },
    settings: { from: 'nowhere' },
  };
  const faults = [
    'spec.parts must have at most 3 items when size is small',
    'spec.parts[3].count makes it more than 150 parts',
    'spec.settings.from must name a ConfigMap; there is no "nowhere"',
  ];

  it('refuses an object with all its faults at once, and stores nothing', async () => {
    const { labels: _, ...spec } = wrong;
    const error: unknown = await admin
      .create(widget, aWidget(namespace, 'wrong', spec))
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(Invalid);
    expect((error as Invalid).message).toContain(`Widget "wrong" is refused: ${faults.join('; ')}`);
    expect((error as Invalid).causes.map(({ field, message }) => `${field} ${message}`)).toEqual(faults);
    await expect(admin.get(widget, { namespace, name: 'wrong' })).rejects.toThrow(NotFound);
  });

  it('tells the faults of the schema and of the rules together', async () => {
    const error: unknown = await admin
      .create(widget, aWidget(namespace, 'wrong', wrong))
      .catch((e: unknown) => e);
    expect((error as Invalid).causes.map(({ field }) => field)).toEqual([
      'spec.labels.UPPER',
      'spec.parts[3].count',
      'spec.settings.from',
    ]);
  });

  it('refuses a change without touching the object', async () => {
    await admin.create(configMaps, { metadata: { namespace, name: 'settings' } });
    const made = await admin.create(
      widget,
      aWidget(namespace, 'changed', { delivery: { by: 'drone', pad: 1 }, settings: { from: 'settings' } }),
    );
    const change = admin.patch(
      widget,
      { namespace, name: 'changed' },
      { kind: 'merge', body: { spec: { size: 'large', delivery: { by: 'post', address: 'x', pad: null } } } },
    );
    await expect(change).rejects.toThrow('spec.delivery.by must not change');
    expect(await admin.get(widget, { namespace, name: 'changed' })).toEqual(made);
  });

  it('reads well in kubectl, and warns there', async () => {
    const refused = await applied({ settings: { from: 'nowhere' } });
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain('spec.settings.from: must name a ConfigMap; there is no "nowhere"');
    const warned = await applied({ replicas: 0 });
    expect(warned.exitCode).toBe(0);
    expect(warned.stderr).toContain('Warning: spec.replicas is 0: nothing will be made');
  });

  it('knows a dry run and who asks', async () => {
    await admin.create(widget, aWidget(namespace, 'dry'), { dryRun: true });
    expect(seen.at(-1)).toMatchObject({ dryRun: true, operation: 'CREATE', old: undefined });
    expect(seen.at(-1)?.user.groups).toContain('system:authenticated');
    await expect(admin.get(widget, { namespace, name: 'dry' })).rejects.toThrow(NotFound);
    await admin.create(widget, aWidget(namespace, 'wet'));
    expect(seen.at(-1)?.dryRun).toBe(false);
  });

  it('is not asked about a status', async () => {
    await admin.create(widget, aWidget(namespace, 'status'));
    const before = seen.length;
    const ref = { namespace, name: 'status' };
    await admin.patch(
      widget,
      ref,
      { kind: 'merge', body: { status: { replicas: 1 } } },
      { subresource: 'status' },
    );
    expect(seen).toHaveLength(before);
  });

  it('is asked before a deletion', async () => {
    await admin.create(widget, aWidget(namespace, 'kept', {}, { annotations: { [KEEP]: 'true' } }));
    const ref = { namespace, name: 'kept' };
    await expect(admin.delete(widget, ref)).rejects.toThrow('must be taken off before the widget is deleted');
    await admin.patch(widget, ref, { kind: 'merge', body: { metadata: { annotations: { [KEEP]: null } } } });
    await admin.delete(widget, ref);
    await expect(admin.get(widget, ref)).rejects.toThrow(NotFound);
  });

  it('never keeps an object from going that later rules would refuse', async () => {
    const ref = { namespace, name: 'dying' };
    await admin.create(widget, aWidget(namespace, ref.name, {}, { finalizers: ['test.taskflow.dev/hold'] }));
    await admin.delete(widget, ref);
    serving.server.replaceKinds([
      webhookKind(widget, { validate: () => [{ path: 'spec', message: 'is never right' }] }),
    ]);
    try {
      const label = { kind: 'merge' as const, body: { spec: { replicas: 9 } } };
      await expect(admin.patch(widget, ref, label)).rejects.toThrow('spec is never right');
      await admin.patch(widget, ref, { kind: 'merge', body: { metadata: { finalizers: null } } });
      await expect(admin.get(widget, ref)).rejects.toThrow(NotFound);
    } finally {
      serving.server.replaceKinds([webhookKind(widget, rules)]);
    }
  });

  async function applied(spec: object): Promise<KubectlResult> {
    await using directory = await temporaryDirectory();
    const file = join(directory.path, 'widget.json');
    const head = { apiVersion: 'test.taskflow.dev/v1alpha1', kind: 'Widget' };
    await writeFile(file, JSON.stringify({ ...head, ...aWidget(namespace, 'read', spec) }));
    return await cluster.kubectl('apply', '-f', file);
  }
});

describe('a kind whose webhook has trouble', () => {
  beforeAll(() => installWidget(admin));

  const marking: Pick<WebhookRules<Widget>, 'defaults'> = {
    defaults: (object) => ({
      ...object,
      spec: { ...object.spec, labels: { maker: 'x', ...object.spec.labels } },
    }),
  };

  /** What a creation comes to while nobody answers. */
  async function unanswered(failurePolicy: 'Fail' | 'Ignore'): Promise<Widget> {
    const namespace = await cluster.namespace('policy');
    const kinds = [webhookKind(widget, { ...marking, failurePolicy })];
    await using serving = await serve({ client: admin, namespace, kinds });
    await untilCalled(isAsked(namespace));
    await serving.server.stop();
    return await admin.create(widget, aWidget(namespace, 'made'), { dryRun: true });
  }

  it('is refused while nobody answers, if its failurePolicy is Fail', async () => {
    await expect(unanswered('Fail')).rejects.toThrow(
      'failed calling webhook "mutate.widgets.test.taskflow.dev"',
    );
  });

  it('is let in while nobody answers, if its failurePolicy is Ignore', async () => {
    expect((await unanswered('Ignore')).spec.labels).toBeUndefined();
  });

  /** What a creation comes to when the rules throw. */
  async function thrownAt(failurePolicy: 'Fail' | 'Ignore'): Promise<ApiError | undefined> {
    const namespace = await cluster.namespace('throwing');
    const asked = { times: 0 };
    const rules: WebhookRules<Widget> = {
      failurePolicy,
      validate() {
        asked.times++;
        throw new Error('password=hunter2');
      },
    };
    await using _ = await serve({ client: admin, namespace, kinds: [webhookKind(widget, rules)] });
    return await answerOnce(namespace, asked);
  }

  it('is refused when its rules throw, without what they threw', async () => {
    const answer = await thrownAt('Fail');
    expect(answer?.code).toBe(500);
    expect(answer?.message).toContain('the rules of Widget failed');
    expect(answer?.message).not.toContain('hunter2');
  });

  it('is let in when its rules throw, if its failurePolicy is Ignore', async () => {
    expect(await thrownAt('Ignore')).toBeUndefined();
  });

  it('is told that its rules are too slow, before the API server loses patience', async () => {
    const namespace = await cluster.namespace('slow');
    const asked = { times: 0 };
    const rules: WebhookRules<Widget> = {
      validate() {
        asked.times++;
        return new Promise(() => {});
      },
    };
    const kinds = [webhookKind(widget, rules)];
    await using _ = await serve({ client: admin, namespace, kinds, timeoutSeconds: 1 });
    const answer = await answerOnce(namespace, asked);
    expect(answer?.code).toBe(504);
    expect(answer?.message).toContain('the rules of Widget took too long');
  });

  /** What the API server says to the first creation that it asks the rules about; undefined if it lets it in. */
  async function answerOnce(namespace: string, asked: { times: number }): Promise<ApiError | undefined> {
    let answer: ApiError | undefined;
    await untilCalled(async () => {
      try {
        await admin.create(widget, aWidget(namespace, 'probe'), { dryRun: true });
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        answer = error;
      }
      return asked.times > 0;
    });
    return answer;
  }
});
