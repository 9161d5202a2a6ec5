import { describe, expect, expectTypeOf, it } from 'vitest';
import * as z from 'zod';
import { customResourceDefinition, crdYaml } from './crd.ts';
import { defineSchema, type ObjectOf, type SchemaOptions } from './define-schema.ts';
import { englishPlural } from './english-plural.ts';

const minimal = {
  group: 'test.taskflow.dev',
  version: 'v1',
  kind: 'Thing',
  spec: z.object({ size: z.int32().default(1) }),
  status: z.object({ phase: z.string(), readyAt: z.iso.datetime().optional() }),
} satisfies SchemaOptions<z.ZodObject, z.ZodObject>;

describe('englishPlural', () => {
  it.each([
    ['OBCluster', 'obclusters'],
    ['DRPolicy', 'drpolicies'],
    ['Gateway', 'gateways'],
    ['Proxy', 'proxies'],
    ['Class', 'classes'],
    ['Box', 'boxes'],
    ['Batch', 'batches'],
    ['Flash', 'flashes'],
  ])('%s → %s', (kind, plural) => {
    expect(englishPlural(kind)).toBe(plural);
  });
});

describe('defineSchema', () => {
  it('fills in names, scope and the common category', () => {
    expect(defineSchema({ ...minimal, categories: ['all', 'taskflow'] })).toMatchObject({
      plural: 'things',
      singular: 'thing',
      namespaced: true,
      categories: ['taskflow', 'all'],
    });
  });

  it('carries the type of its objects', () => {
    const thing = defineSchema(minimal);
    expectTypeOf<ObjectOf<typeof thing>['spec']>().toEqualTypeOf<{ size: number }>();
    expectTypeOf<ObjectOf<typeof thing>['status']>().toEqualTypeOf<
      { phase?: string; readyAt?: string | undefined } | undefined
    >();
  });

  it.each([
    [{ group: 'nodots' }, 'the group "nodots"'],
    [{ version: '1' }, 'the version "1"'],
    [{ kind: 'thing' }, 'the kind "thing"'],
    [{ plural: 'Things' }, 'the name "Things"'],
    [{ shortNames: ['t!'] }, 'the name "t!"'],
  ])('refuses %j', (wrong, message) => {
    expect(() => defineSchema({ ...minimal, ...wrong })).toThrow(message);
  });
});

describe('customResourceDefinition', () => {
  const versionOf = (options: Partial<typeof minimal> & object) =>
    customResourceDefinition(defineSchema({ ...minimal, ...options })).spec.versions[0];

  it('adds an Age column last and finds the type of the others in the schema', () => {
    const version = versionOf({
      columns: [
        { name: 'Size', jsonPath: '.spec.size', priority: 1 },
        { name: 'Ready', jsonPath: '.status.readyAt', description: 'When.' },
        { name: 'First', jsonPath: '.spec.list[0].name' },
        { name: 'Kind', jsonPath: '.kind', type: 'string' },
      ],
    } as object);
    expect(version?.additionalPrinterColumns).toMatchObject([
      { name: 'Size', type: 'integer', priority: 1 },
      { name: 'Ready', type: 'date', description: 'When.' },
      { name: 'First', type: 'string' },
      { name: 'Kind', type: 'string' },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ]);
  });

  it.each([
    ['.spec.sise', 'there is no field "sise"'],
    ['spec.size', 'must start with a dot'],
  ])('refuses the column path %s', (jsonPath, message) => {
    expect(() => versionOf({ columns: [{ name: 'Size', jsonPath }] } as object)).toThrow(message);
  });

  it('gives an absent spec its defaults, or demands it if a field of it is demanded', () => {
    const optional = versionOf({})?.schema.openAPIV3Schema;
    expect(optional?.required).toBeUndefined();
    expect(optional?.properties?.['spec']?.default).toEqual({ size: 1 });
    const demanded = versionOf({ spec: z.object({ name: z.string() }) } as object)?.schema.openAPIV3Schema;
    expect(demanded?.required).toEqual(['spec']);
    expect(demanded?.properties?.['spec']?.default).toBeUndefined();
  });

  it('demands no field of the status, which is written piece by piece', () => {
    expect(versionOf({})?.schema.openAPIV3Schema.properties?.['status']?.required).toBeUndefined();
  });

  it('names the kind in what it refuses', () => {
    const kind = defineSchema({ ...minimal, spec: z.object({ at: z.date() }) });
    expect(() => customResourceDefinition(kind)).toThrow('Thing: spec.at is a Date, which is not structural');
  });

  it('quotes what YAML 1.1 takes for booleans', () => {
    const kind = defineSchema({ ...minimal, spec: z.object({ mode: z.enum(['on', 'off', 'y', 'no']) }) });
    for (const word of ['on', 'off', 'y', 'no']) expect(crdYaml(kind)).toContain(`- '${word}'`);
  });
});
