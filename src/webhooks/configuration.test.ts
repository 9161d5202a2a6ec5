import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { contains, FINGERPRINT, webhookConfigurations } from './configuration.ts';
import { webhookKind } from './rules.ts';
import { defineSchema } from '../kube/schema/define-schema.ts';

const spec = z.object({ size: z.int() });
const status = z.object({});
const common = { group: 'test.taskflow.dev', version: 'v1', spec, status };
const box = defineSchema({ ...common, kind: 'Box' });
const rack = defineSchema({ ...common, kind: 'Rack', scope: 'Cluster' });
const kinds = [
  webhookKind(box, { validateDelete: () => [] }),
  webhookKind(rack, { failurePolicy: 'Ignore' }),
];
const url = { name: 'taskflow', endpoint: { url: 'https://127.0.0.1:9443/' }, caBundle: 'PEM' } as const;

describe('webhookConfigurations', () => {
  it('has one webhook per kind and mode, each with what the kind says', () => {
    const { mutating, validating } = webhookConfigurations(kinds, url);
    expect(mutating.webhooks).toMatchObject([
      {
        name: 'mutate.boxes.test.taskflow.dev',
        clientConfig: {
          url: 'https://127.0.0.1:9443/mutate/test.taskflow.dev/v1/boxes',
          caBundle: Buffer.from('PEM').toString('base64'),
        },
        failurePolicy: 'Fail',
        sideEffects: 'None',
        matchPolicy: 'Equivalent',
        timeoutSeconds: 10,
        rules: [{ operations: ['CREATE', 'UPDATE'], scope: 'Namespaced', resources: ['boxes'] }],
      },
      { name: 'mutate.racks.test.taskflow.dev', failurePolicy: 'Ignore', rules: [{ scope: 'Cluster' }] },
    ]);
    expect(validating.webhooks).toMatchObject([
      { rules: [{ operations: ['CREATE', 'UPDATE', 'DELETE'] }] },
      { rules: [{ operations: ['CREATE', 'UPDATE'] }] },
    ]);
  });

  it('names a Service in a cluster, and leaves the trust to others where it has none', () => {
    const endpoint = { service: { namespace: 'taskflow', name: 'webhook', port: 443 } };
    const annotations = { 'cert-manager.io/inject-ca-from': 'taskflow/webhook' };
    const { validating } = webhookConfigurations(kinds, { name: 'taskflow', endpoint, annotations });
    expect(validating.webhooks?.[0]?.clientConfig).toEqual({
      service: {
        namespace: 'taskflow',
        name: 'webhook',
        port: 443,
        path: '/validate/test.taskflow.dev/v1/boxes',
      },
    });
    expect(validating.metadata?.annotations).toMatchObject(annotations);
  });

  it('has a fingerprint that changes with the webhooks, but not with the certificates', () => {
    const print = (some: typeof kinds, caBundle: string): unknown =>
      webhookConfigurations(some, { ...url, caBundle }).mutating.metadata?.annotations?.[FINGERPRINT];
    expect(print(kinds, 'one')).toBe(print(kinds, 'two'));
    expect(print(kinds, 'one')).not.toBe(print(kinds.slice(1), 'one'));
  });
});

describe('contains', () => {
  it.each<readonly [name: string, found: unknown, wanted: unknown, expected: boolean]>([
    ['more fields', { a: 1, b: 2 }, { a: 1 }, true],
    ['another value', { a: 2 }, { a: 1 }, false],
    ['a missing field', {}, { a: 1 }, false],
    ['a list of another length', { a: [1, 2] }, { a: [1] }, false],
    ['a list in another order', { a: [2, 1] }, { a: [1, 2] }, false],
    ['named items beside others', [{ name: 'x' }, { name: 'a', b: 1 }], [{ name: 'a' }], true],
    ['a named item that is gone', [{ name: 'x' }], [{ name: 'a' }], false],
    ['an empty selector that was filled', { s: { matchLabels: {} } }, { s: {} }, false],
    ['an empty list that was filled', { a: [1] }, { a: [] }, false],
    ['nothing', undefined, { a: 1 }, false],
    ['text where an object should be', 'x', { a: 1 }, false],
    ['an object where a list should be', {}, [1], false],
  ])('%s', (_, found, wanted, expected) => {
    expect(contains(found, wanted)).toBe(expected);
  });
});
