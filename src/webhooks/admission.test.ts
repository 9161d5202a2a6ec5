import { applyPatch, type Operation } from 'rfc6902';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { admit, type AdmissionMode } from './admission.ts';
import { MalformedReviewError } from './admission-review.ts';
import { type WebhookKind, webhookKind, type WebhookRules } from './rules.ts';
import type { KubeClient } from '../kube/client.ts';
import { defineSchema, type ObjectOf } from '../kube/schema/define-schema.ts';

const boxes = defineSchema({
  group: 'test.taskflow.dev',
  version: 'v1',
  kind: 'Box',
  spec: z
    .object({
      size: z.int().min(1).default(1),
      items: z.array(z.object({ name: z.string(), count: z.int().min(1).default(1) })).default([]),
      lid: z.string().optional(),
    })
    .refine(({ size, items }) => items.length <= size, { path: ['items'], message: 'must fit into the box' }),
  status: z.object({}),
});
type Box = ObjectOf<typeof boxes>;

const client = {} as KubeClient;

interface Asked {
  readonly operation?: string;
  readonly object?: object | null;
  readonly oldObject?: object | null;
  readonly [field: string]: unknown;
}

function reviewOf(asked: Asked): object {
  const request = {
    uid: 'u1',
    kind: { group: 'test.taskflow.dev', version: 'v1', kind: 'Box' },
    operation: 'CREATE',
    name: 'b1',
    userInfo: { username: 'ann', groups: ['crew'] },
    ...asked,
  };
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request };
}

function box(spec: unknown, metadata: object = {}): object {
  return { apiVersion: 'test.taskflow.dev/v1', kind: 'Box', metadata: { name: 'b1', ...metadata }, spec };
}

async function ask(
  asked: Asked,
  mode: AdmissionMode,
  rules: WebhookRules<Box> = {},
  signal: AbortSignal = new AbortController().signal,
) {
  const { response } = await admit(reviewOf(asked), webhookKind(boxes, rules), mode, { client, signal });
  return response;
}

async function completed(asked: Asked & { object: object }, rules?: WebhookRules<Box>): Promise<object> {
  const { patch } = await ask(asked, 'mutate', rules);
  const object = structuredClone(asked.object);
  const operations =
    patch === undefined ? [] : (JSON.parse(Buffer.from(patch, 'base64').toString()) as Operation[]);
  expect(applyPatch(object, operations).every((result) => result === null)).toBe(true);
  return object;
}

describe('defaults', () => {
  it('sets those of the schema, also inside lists', async () => {
    const object = box({ items: [{ name: 'a' }], future: 1 });
    expect(await completed({ object })).toEqual(
      box({ size: 1, items: [{ name: 'a', count: 1 }], future: 1 }),
    );
  });

  it('sets all of them on an object without a spec', async () => {
    expect(await completed({ object: { metadata: { name: 'b1' } } })).toEqual({
      metadata: { name: 'b1' },
      spec: { size: 1, items: [] },
    });
  });

  it('sends no patch where nothing is missing', async () => {
    expect(await ask({ object: box({ size: 2, items: [] }) }, 'mutate')).toEqual({
      uid: 'u1',
      allowed: true,
    });
  });

  it('are followed by those of the rules, which see the others and may write or return', async () => {
    const returning: WebhookRules<Box> = {
      defaults: (object, { user }) => ({
        ...object,
        spec: { ...object.spec, lid: `${user.username} ${object.spec.size}` },
      }),
    };
    expect(await completed({ object: box({}) }, returning)).toMatchObject({
      spec: { size: 1, lid: 'ann 1' },
    });
    const writing: WebhookRules<Box> = {
      defaults(object) {
        object.spec.lid = 'written';
        object.metadata.labels = { made: 'yes' };
        return object;
      },
    };
    expect(await completed({ object: box({ size: 3 }) }, writing)).toMatchObject({
      metadata: { labels: { made: 'yes' } },
      spec: { lid: 'written' },
    });
  });

  it('leave an object that is wrong to the validation', async () => {
    expect(await ask({ object: box({ size: 'big' }) }, 'mutate')).toEqual({ uid: 'u1', allowed: true });
    const throwing: WebhookRules<Box> = {
      defaults: () => {
        throw new Error('size is not a number');
      },
    };
    expect(await ask({ object: box({ size: 'big' }) }, 'mutate', throwing)).toEqual({
      uid: 'u1',
      allowed: true,
    });
  });
});

describe('validation', () => {
  const rules: WebhookRules<Box> = {
    validate: (object, { old }) => [
      ...(object.spec.lid === 'glass' ? [{ path: 'spec.lid', message: 'must not be glass' }] : []),
      ...(old && old.spec.size > object.spec.size ? [{ path: 'spec.size', message: 'must not shrink' }] : []),
    ],
    validateDelete: (object) => (object.spec.lid === 'locked' ? [{ path: '', message: 'it is locked' }] : []),
    warnings: (object) => (object.spec.size > 100 ? ['that is\na very large box'] : []),
  };

  it('lets in what is right', async () => {
    expect(await ask({ object: box({ size: 1 }) }, 'validate', rules)).toEqual({ uid: 'u1', allowed: true });
  });

  it('tells all faults of schema, refinements and rules in one answer', async () => {
    const object = box({ size: 1, items: [{ name: 'a' }, { name: 'b' }], lid: 'glass' });
    const response = await ask({ object }, 'validate', rules);
    expect(response).toEqual({
      uid: 'u1',
      allowed: false,
      status: {
        status: 'Failure',
        code: 422,
        reason: 'Invalid',
        message: 'Box "b1" is refused: spec.items must fit into the box; spec.lid must not be glass',
        details: {
          name: 'b1',
          group: 'test.taskflow.dev',
          kind: 'Box',
          causes: [
            { reason: 'FieldValueInvalid', field: 'spec.items', message: 'must fit into the box' },
            { reason: 'FieldValueInvalid', field: 'spec.lid', message: 'must not be glass' },
          ],
        },
      },
    });
  });

  it('still tells the faults of the schema where the rules cannot cope with them', async () => {
    const throwing: WebhookRules<Box> = {
      validate: (object) =>
        object.spec.items.map(({ name }) => ({ path: name, message: 'is never reached' })),
    };
    const response = await ask({ object: box({ size: 0, items: 7 }) }, 'validate', throwing);
    expect(response.status?.message).toBe(
      'Box "b1" is refused: spec.size must be at least 1; spec.items must be a list',
    );
  });

  it('compares with the old object', async () => {
    const asked = { operation: 'UPDATE', object: box({ size: 1 }), oldObject: box({ size: 2 }) };
    const response = await ask(asked, 'validate', rules);
    expect(response.status?.message).toContain('spec.size must not shrink');
  });

  it('does not drown anybody', async () => {
    const items = Array.from({ length: 500 }, () => ({ name: 1 }));
    const response = await ask({ object: box({ size: 900, items }) }, 'validate', rules);
    expect(response.status?.details?.causes).toHaveLength(50);
    expect(response.status?.message).toMatch(/and 450 more$/);
  });

  it('warns in one line', async () => {
    const response = await ask({ object: box({ size: 200 }) }, 'validate', rules);
    expect(response).toMatchObject({ allowed: true, warnings: ['that is a very large box'] });
  });

  it('asks the rule for deletion with the object that goes', async () => {
    const deletion = (lid: string): Asked => ({
      operation: 'DELETE',
      object: null,
      oldObject: box({ size: 1, lid }),
    });
    expect((await ask(deletion('open'), 'validate', rules)).allowed).toBe(true);
    expect((await ask(deletion('locked'), 'validate', rules)).status?.message).toBe(
      'Box "b1" is refused: it is locked',
    );
    expect((await ask(deletion('locked'), 'mutate', rules)).allowed).toBe(true);
    expect(
      (await ask({ operation: 'DELETE', object: null, oldObject: null }, 'validate', rules)).allowed,
    ).toBe(true);
  });

  it('does not stand in the way of a deletion, but does not let a spec slip through either', async () => {
    const dying = { deletionTimestamp: '2026-11-18T12:00:00Z' };
    const wrong = { size: 0 };
    const finalizerGone = {
      operation: 'UPDATE',
      object: box(wrong, dying),
      oldObject: box(wrong, { ...dying, finalizers: ['x/y'] }),
    };
    expect(await ask(finalizerGone, 'validate', rules)).toEqual({ uid: 'u1', allowed: true });
    expect(await ask(finalizerGone, 'mutate', rules)).toEqual({ uid: 'u1', allowed: true });
    const changed = { ...finalizerGone, oldObject: box({ size: 5 }, dying) };
    expect((await ask(changed, 'validate', rules)).allowed).toBe(false);
  });

  it('does not refuse a label or a finalizer for a spec that was there before', async () => {
    const strict: WebhookRules<Box> = {
      validate: (object) => [
        { path: 'spec.size', message: 'is not what it used to be' },
        ...(object.metadata.labels?.['colour'] === 'red'
          ? [{ path: 'metadata.labels.colour', message: 'must not be red' }]
          : []),
      ],
    };
    const relabelled = (labels: object): Asked => ({
      operation: 'UPDATE',
      object: box({ size: 0 }, { labels }),
      oldObject: box({ size: 0 }),
    });
    expect(await ask(relabelled({}), 'validate', strict)).toEqual({ uid: 'u1', allowed: true });
    expect(await ask(relabelled({}), 'mutate', strict)).toEqual({ uid: 'u1', allowed: true });
    expect((await ask(relabelled({ colour: 'red' }), 'validate', strict)).status?.message).toBe(
      'Box "b1" is refused: metadata.labels.colour must not be red',
    );
    const changed = { ...relabelled({}), oldObject: box({ size: 1 }) };
    expect((await ask(changed, 'validate', strict)).status?.details?.causes).toHaveLength(2);
  });

  it.each([{ subResource: 'status' }, { subResource: 'scale' }, { operation: 'CONNECT' }])(
    'has nothing to say about %j',
    async (asked) => {
      expect((await ask({ object: box({ size: 0 }), ...asked }, 'validate', rules)).allowed).toBe(true);
    },
  );

  it('names an object that has no name yet by its prefix', async () => {
    const object = { metadata: { generateName: 'b-' }, spec: { size: 0 } };
    expect((await ask({ object, name: undefined }, 'validate')).status?.message).toContain(
      'Box "b-*" is refused',
    );
  });
});

describe('rules that fail', () => {
  const failing: WebhookRules<Box> = {
    validate: () => {
      throw new Error('password=hunter2');
    },
  };

  async function withLog(kind: WebhookKind, signal = new AbortController().signal) {
    const logged: unknown[] = [];
    const record = (_: string, fields?: object): number => logged.push(fields);
    let failures = 0;
    const review = await admit(reviewOf({ object: box({ size: 1 }) }), kind, 'validate', {
      client,
      signal,
      log: { info: record, warn: record, error: record },
      onRuleFailure: () => failures++,
    });
    return { response: review.response, logged, failures };
  }

  it('refuse the object; only the log hears what happened', async () => {
    const { response, logged, failures } = await withLog(webhookKind(boxes, failing));
    expect(response).toMatchObject({ allowed: false, status: { code: 500, reason: 'InternalError' } });
    expect(JSON.stringify(response)).not.toContain('hunter2');
    expect(logged).toMatchObject([{ error: { message: 'password=hunter2' } }]);
    expect(failures).toBe(1);
  });

  it('let it in with a warning where the kind says Ignore', async () => {
    const { response } = await withLog(webhookKind(boxes, { ...failing, failurePolicy: 'Ignore' }));
    expect(response).toMatchObject({ allowed: true, warnings: [expect.stringContaining('was not checked')] });
  });

  it('by taking too long are told that their time is over, and refuse the object', async () => {
    const over = new AbortController();
    const seen: AbortSignal[] = [];
    const slow: WebhookRules<Box> = {
      validate(_, { signal }) {
        seen.push(signal);
        over.abort();
        return new Promise(() => {});
      },
    };
    const { response, failures } = await withLog(webhookKind(boxes, slow), over.signal);
    expect(response).toMatchObject({ allowed: false, status: { code: 504, reason: 'Timeout' } });
    expect(seen[0]?.aborted).toBe(true);
    expect(failures).toBe(0);
  });

  it('after the answer was given hurt nobody', async () => {
    const over = new AbortController();
    const gate = Promise.withResolvers<never>();
    const slow: WebhookRules<Box> = {
      validate() {
        over.abort();
        return gate.promise;
      },
    };
    expect((await withLog(webhookKind(boxes, slow), over.signal)).response.allowed).toBe(false);
    gate.reject(new Error('too late'));
    await new Promise(setImmediate);
  });
});

describe('a malformed review', () => {
  const kind = webhookKind(boxes);
  const environment = { client, signal: new AbortController().signal };

  it.each([
    undefined,
    null,
    1,
    'x',
    [],
    {},
    { request: {} },
    { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' },
    {
      ...reviewOf({}),
      request: { ...(reviewOf({ object: box({}) }) as { request: object }).request, uid: '' },
    },
  ])('without a uid is an error: %j', async (review) => {
    await expect(admit(review, kind, 'validate', environment)).rejects.toThrow(MalformedReviewError);
  });

  it.each<readonly [name: string, review: object]>([
    ['another version', { ...reviewOf({ object: box({}) }), apiVersion: 'admission.k8s.io/v1beta1' }],
    ['another kind of message', { ...reviewOf({ object: box({}) }), kind: 'Review' }],
    ['an unknown operation', reviewOf({ object: box({}), operation: 'PEEK' })],
    ['no object', reviewOf({ object: null })],
    ['an object that is a list', reviewOf({ object: [] })],
    ['an object without metadata', reviewOf({ object: { spec: {} } })],
    [
      'another kind of object',
      reviewOf({ object: box({}), kind: { group: '', version: 'v1', kind: 'Pod' } }),
    ],
  ])('with a uid is refused in due form: %s', async (_, review) => {
    expect((await admit(review, kind, 'validate', environment)).response).toMatchObject({
      uid: 'u1',
      allowed: false,
      status: { code: 400, reason: 'BadRequest' },
    });
  });
});
