import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import type { JSONSchemaProps } from './json-schema-props.ts';
import {
  anyValue,
  atomicList,
  atomicObject,
  cel,
  conditions,
  duration,
  embeddedMetadata,
  embeddedResource,
  immutable,
  intOrString,
  labelSelector,
  listMap,
  listSet,
  localReference,
  preserveUnknownFields,
  quantity,
  timestamp,
} from './kubernetes-types.ts';
import { NotStructuralError } from './not-structural-error.ts';
import { structuralSchema } from './structural.ts';

type Case = readonly [name: string, schema: z.ZodType, expected: JSONSchemaProps];

const LEAVES: readonly Case[] = [
  ['a string', z.string(), { type: 'string' }],
  ['a bounded string', z.string().min(1).max(63), { type: 'string', minLength: 1, maxLength: 63 }],
  ['a string of one length', z.string().length(4), { type: 'string', minLength: 4, maxLength: 4 }],
  ['a string with a pattern', z.string().regex(/^a+$/), { type: 'string', pattern: '^a+$' }],
  ['a pattern with a flag', z.string().regex(/^a$/i), { type: 'string', pattern: '(?i)^a$' }],
  [
    'two patterns',
    z.string().regex(/^a/).regex(/z$/),
    { type: 'string', allOf: [{ pattern: '^a' }, { pattern: 'z$' }] },
  ],
  ['a start', z.string().startsWith('a.'), { type: 'string', pattern: String.raw`^a\..*` }],
  ['an e-mail address', z.email(), { type: 'string', format: 'email' }],
  ['a URL', z.url(), { type: 'string', format: 'uri' }],
  ['a UUID', z.uuid(), { type: 'string', format: 'uuid' }],
  ['an IP address', z.ipv4(), { type: 'string', format: 'ipv4' }],
  ['a network', z.cidrv6(), { type: 'string', format: 'cidr' }],
  ['bytes', z.base64(), { type: 'string', format: 'byte' }],
  ['a template', z.templateLiteral(['v', z.int()]), { type: 'string', pattern: String.raw`^v-?\d+$` }],
  ['a boolean', z.boolean(), { type: 'boolean' }],
  ['a number', z.number(), { type: 'number' }],
  ['a float', z.float32(), { type: 'number', format: 'float' }],
  ['a double', z.float64(), { type: 'number', format: 'double' }],
  ['an integer', z.int(), { type: 'integer', format: 'int64' }],
  ['an integer by check', z.number().int(), { type: 'integer', format: 'int64' }],
  ['a small integer', z.int32(), { type: 'integer', format: 'int32' }],
  ['an unsigned', z.uint32(), { type: 'integer', format: 'int64', minimum: 0, maximum: 4294967295 }],
  ['bounds', z.int().min(1).max(9), { type: 'integer', format: 'int64', minimum: 1, maximum: 9 }],
  ['a positive integer', z.int().positive(), { type: 'integer', format: 'int64', minimum: 1 }],
  ['a negative integer', z.int().negative(), { type: 'integer', format: 'int64', maximum: -1 }],
  [
    'the tighter of two bounds',
    z.int().min(1).gt(3).min(2),
    { type: 'integer', format: 'int64', minimum: 4 },
  ],
  [
    'an open bound',
    z.number().gt(0).lt(1),
    {
      type: 'number',
      minimum: 0,
      exclusiveMinimum: true,
      maximum: 1,
      exclusiveMaximum: true,
    },
  ],
  ['multiples', z.int().multipleOf(5), { type: 'integer', format: 'int64', multipleOf: 5 }],
  ['an enum', z.enum(['a', 'b']), { type: 'string', enum: ['a', 'b'] }],
  ['an enum of numbers', z.enum({ One: 1, Two: 2 }), { type: 'integer', enum: [1, 2] }],
  ['a literal', z.literal('a'), { type: 'string', enum: ['a'] }],
  ['literals', z.literal([1, 2]), { type: 'integer', enum: [1, 2] }],
  ['a boolean literal', z.literal(true), { type: 'boolean', enum: [true] }],
];

const COMPOSITES: readonly Case[] = [
  [
    'an object with required and optional fields',
    z.object({ b: z.string(), a: z.int32(), c: z.boolean().optional() }),
    {
      type: 'object',
      required: ['a', 'b'],
      properties: { b: { type: 'string' }, a: { type: 'integer', format: 'int32' }, c: { type: 'boolean' } },
    },
  ],
  ['an empty object', z.object({}), { type: 'object' }],
  [
    'a strict object, whose unknown fields are pruned',
    z.strictObject({ a: z.string().optional() }),
    {
      type: 'object',
      properties: { a: { type: 'string' } },
    },
  ],
  [
    'a loose object',
    z.looseObject({ a: z.string().optional() }),
    {
      type: 'object',
      properties: { a: { type: 'string' } },
      'x-kubernetes-preserve-unknown-fields': true,
    },
  ],
  [
    'a catchall without fields',
    z.object({}).catchall(z.string()),
    {
      type: 'object',
      additionalProperties: { type: 'string' },
    },
  ],
  [
    'a list',
    z.array(z.string()).min(1).max(3),
    {
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
      maxItems: 3,
    },
  ],
  [
    'a record',
    z.record(z.string(), z.string()),
    { type: 'object', additionalProperties: { type: 'string' } },
  ],
  [
    'a record of known keys',
    z.record(z.enum(['a', 'b']), z.string()),
    {
      type: 'object',
      required: ['a', 'b'],
      properties: { a: { type: 'string' }, b: { type: 'string' } },
    },
  ],
  [
    'a partial record',
    z.partialRecord(z.enum(['a']), z.string()),
    {
      type: 'object',
      properties: { a: { type: 'string' } },
    },
  ],
  ['a nullable', z.string().nullable(), { type: 'string', nullable: true }],
  ['a union with null', z.union([z.string(), z.null()]), { type: 'string', nullable: true }],
  ['a default', z.string().default('x'), { type: 'string', default: 'x' }],
  [
    'a default whose fields have defaults',
    z.object({ a: z.string().default('x') }).prefault({}),
    { type: 'object', properties: { a: { type: 'string', default: 'x' } }, default: { a: 'x' } },
  ],
  [
    'a random default, which is the webhook’s',
    z.string().default(() => String(Math.random())),
    {
      type: 'string',
    },
  ],
  ['a readonly', z.array(z.string()).readonly(), { type: 'array', items: { type: 'string' } }],
  ['a lazy', z.lazy(() => z.string()), { type: 'string' }],
  ['a refinement, which is the webhook’s', z.string().refine((text) => text !== 'x'), { type: 'string' }],
  [
    'a union of fixed values',
    z.union([z.literal('a'), z.enum(['b', 'a'])]),
    {
      type: 'string',
      enum: ['a', 'b'],
    },
  ],
  [
    'a union of strings',
    z.union([z.string().max(2), z.string().regex(/^x/)]),
    {
      type: 'string',
      anyOf: [{ maxLength: 2 }, { pattern: '^x' }],
    },
  ],
  ['a description', z.string().describe('A name.').optional(), { description: 'A name.', type: 'string' }],
  [
    'an outer description',
    z.string().describe('inner').optional().describe('outer'),
    {
      description: 'outer',
      type: 'string',
    },
  ],
  ['a bound for the cost of CEL', z.string().meta({ maxLength: 9 }), { type: 'string', maxLength: 9 }],
  [
    'the same piece twice',
    z.object({ a: localReference().optional(), b: localReference().optional() }),
    {
      type: 'object',
      properties: { a: structuralSchema(localReference()), b: structuralSchema(localReference()) },
    },
  ],
];

const KUBERNETES_TYPES: readonly Case[] = [
  [
    'intOrString()',
    intOrString(),
    {
      anyOf: [{ type: 'integer' }, { type: 'string' }],
      'x-kubernetes-int-or-string': true,
    },
  ],
  [
    'preserveUnknownFields()',
    preserveUnknownFields(),
    {
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
    },
  ],
  ['anyValue()', anyValue(), { 'x-kubernetes-preserve-unknown-fields': true }],
  ['timestamp()', timestamp(), { type: 'string', format: 'date-time' }],
  [
    'listMap()',
    listMap(z.array(z.object({ name: z.string() })), ['name']),
    {
      type: 'array',
      items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    },
  ],
  [
    'listSet()',
    listSet(z.array(z.string())),
    {
      type: 'array',
      items: { type: 'string' },
      'x-kubernetes-list-type': 'set',
    },
  ],
  [
    'atomicList()',
    atomicList(z.array(z.string())),
    {
      type: 'array',
      items: { type: 'string' },
      'x-kubernetes-list-type': 'atomic',
    },
  ],
  ['atomicObject()', atomicObject(z.object({})), { type: 'object', 'x-kubernetes-map-type': 'atomic' }],
  [
    'embeddedResource()',
    embeddedResource(),
    {
      type: 'object',
      required: ['apiVersion', 'kind'],
      properties: { apiVersion: { type: 'string' }, kind: { type: 'string' } },
      'x-kubernetes-preserve-unknown-fields': true,
      'x-kubernetes-embedded-resource': true,
    },
  ],
  [
    'immutable()',
    immutable(z.string()),
    {
      type: 'string',
      'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'field is immutable' }],
    },
  ],
  [
    'rules on both sides of optional',
    cel(cel(z.string(), 'self != ""', 'a').optional(), 'self != "b"', 'b', { reason: 'FieldValueForbidden' }),
    {
      type: 'string',
      'x-kubernetes-validations': [
        { rule: 'self != ""', message: 'a' },
        { rule: 'self != "b"', message: 'b', reason: 'FieldValueForbidden' },
      ],
    },
  ],
];

describe('structuralSchema', () => {
  it.each([...LEAVES, ...COMPOSITES, ...KUBERNETES_TYPES])('of %s', (_, schema, expected) => {
    expect(structuralSchema(schema)).toEqual(expected);
  });

  it('keeps the meaning of a list when it gets bounds or becomes optional later', () => {
    const list = listMap(z.array(z.object({ name: z.string() })), ['name'])
      .min(1)
      .optional();
    expect(structuralSchema(list)).toMatchObject({ minItems: 1, 'x-kubernetes-list-map-keys': ['name'] });
  });

  it('describes selectors and conditions as Kubernetes does', () => {
    expect(structuralSchema(labelSelector()).properties?.['matchLabels']?.additionalProperties?.type).toBe(
      'string',
    );
    expect(structuralSchema(embeddedMetadata()).required).toBeUndefined();
    expect(structuralSchema(conditions())).toMatchObject({
      'x-kubernetes-list-type': 'map',
      items: { required: ['lastTransitionTime', 'message', 'reason', 'status', 'type'] },
    });
  });
});

interface Tree {
  children: Tree[];
}
const tree: z.ZodType<Tree> = z.lazy(() => z.object({ children: z.array(tree) }));
const selfMade = z.object({
  name: z.string(),
  get part() {
    return selfMade.optional();
  },
});

describe('what is not structural', () => {
  it.each<readonly [name: string, schema: z.ZodType, found: string]>([
    ['a transform', z.string().transform(Number), 'a transform'],
    ['a preprocess', z.preprocess(Number, z.number()), 'a transform'],
    ['a codec', z.stringbool(), 'a transform'],
    ['a trimmed string', z.string().trim(), 'rewrites'],
    ['a coerced number', z.coerce.number(), 'coerced'],
    ['a coerced string', z.coerce.string(), 'coerced'],
    ['a coerced boolean', z.coerce.boolean(), 'coerced'],
    ['a bigint', z.bigint(), 'bigint'],
    ['a date', z.date(), 'a Date'],
    ['a tuple', z.tuple([z.string()]), 'a tuple'],
    ['a map', z.map(z.string(), z.string()), 'a Map'],
    ['a set', z.set(z.string()), 'a Set'],
    ['an intersection', z.object({ a: z.string() }).and(z.object({ b: z.string() })), 'an intersection'],
    ['a union of types', z.union([z.string(), z.object({})]), 'a union of different types'],
    ['a union of number and string', z.union([z.number(), z.string()]), 'a union of different types'],
    [
      'a union of unions',
      z.discriminatedUnion('a', [
        z.object({ a: z.literal(1) }),
        z.discriminatedUnion('b', [z.object({ a: z.literal(2), b: z.literal(1) })]),
      ]),
      'a union of unions',
    ],
    ['anything', z.any(), 'of any type'],
    ['unknown', z.unknown(), 'of any type'],
    ['null', z.null(), 'always null'],
    ['a nullable enum', z.enum(['a']).nullable(), 'a nullable enum'],
    ['an enum or null', z.union([z.enum(['a']), z.literal('b'), z.null()]), 'a nullable enum'],
    ['mixed literals', z.literal(['a', 1]), 'several types'],
    ['catch', z.string().catch('x'), 'hides its faults'],
    ['never', z.never(), 'never has a value'],
    ['a function', z.function(), 'function'],
    ['a class', z.instanceof(RegExp), 'custom'],
    ['a promise', z.promise(z.string()), 'promise'],
    ['named fields and a catchall', z.object({ a: z.string() }).catchall(z.string()), 'catchall'],
    ['lookahead', z.string().regex(/^(?!x)/), 'regular expressions'],
    ['a backreference', z.string().regex(/(a)\1/), 'regular expressions'],
    ['an ISO duration', z.iso.duration(), 'regular expressions'],
    ['a default that is not JSON', z.string().default(undefined as unknown as string), 'not JSON'],
    ['an unknown mark', z.string().meta({ 'x-kubernetes-lst-type': 'set' }), 'x-kubernetes-lst-type'],
  ])('%s is refused with its path and a way out', (_, schema, found) => {
    const outer = z.object({ list: z.array(z.object({ field: schema.optional() })) });
    const conversion = (): unknown => structuralSchema(outer, 'spec');
    expect(conversion).toThrow(NotStructuralError);
    expect(conversion).toThrow(/^spec\.list\[\]\.field is .+, which is not structural; \S/);
    expect(conversion).toThrow(found);
  });

  it.each([
    ['by lazy', tree, 'children[]'],
    ['by getter', selfMade, 'part'],
    ['JSON', z.json(), '[]'],
  ])('recursion %s is refused', (_, schema, path) => {
    expect(() => structuralSchema(schema)).toThrow(`${path} is recursive`);
  });

  it('names the values of a record by a star', () => {
    expect(() => structuralSchema(z.record(z.string(), z.bigint()), 'spec.map')).toThrow(
      'spec.map.* is a bigint',
    );
  });
});

describe('a discriminated union', () => {
  const url = z.string().describe('Where to.');
  const action = z.discriminatedUnion('type', [
    z.object({ type: z.literal('http').describe('What is done.'), url, retries: z.int32().default(3) }),
    z.object({ type: z.literal('hook'), url, namespace: z.string().optional() }),
    z.object({ type: z.enum(['job', 'cron']), image: z.string().default('busybox') }),
  ]);
  const schema = structuralSchema(action);

  it('becomes one object with the fields of all variants', () => {
    expect(schema.required).toEqual(['type']);
    expect(schema.properties).toEqual({
      type: { description: 'What is done.', type: 'string', enum: ['http', 'hook', 'job', 'cron'] },
      url: { description: 'Where to.', type: 'string' },
      retries: { type: 'integer', format: 'int32' },
      namespace: { type: 'string' },
      image: { type: 'string' },
    });
  });

  it('gets rules for what each variant demands and forbids', () => {
    expect(schema['x-kubernetes-validations']?.map(({ rule, message }) => [rule, message])).toEqual([
      ['!(self.type in ["http", "hook"]) || has(self.url)', 'url is required when type is "http" or "hook"'],
      [
        'self.type in ["http", "hook"] || !has(self.url)',
        'url may be set only when type is "http" or "hook"',
      ],
      ['self.type == "http" || !has(self.retries)', 'retries may be set only when type is "http"'],
      ['self.type == "hook" || !has(self.__namespace__)', 'namespace may be set only when type is "hook"'],
      [
        'self.type in ["job", "cron"] || !has(self.image)',
        'image may be set only when type is "job" or "cron"',
      ],
    ]);
  });

  it('forbids nothing to a loose variant', () => {
    const union = z.discriminatedUnion('type', [
      z.object({ type: z.literal('a'), x: z.string().optional() }),
      z.looseObject({ type: z.literal('b') }),
    ]);
    expect(structuralSchema(union)['x-kubernetes-validations']).toBeUndefined();
  });

  it('keeps a default that all variants share, and what all demand', () => {
    const size = z.int32().default(1);
    const union = z.discriminatedUnion('type', [
      z.object({ type: z.literal('a'), name: z.string(), size }),
      z.object({ type: z.literal('b'), name: z.string(), size }),
    ]);
    expect(structuralSchema(union)).toMatchObject({
      required: ['name', 'type'],
      properties: { size: { default: 1 } },
    });
    expect(structuralSchema(union)['x-kubernetes-validations']).toBeUndefined();
  });

  it('refuses a field that is one thing here and another there', () => {
    const union = z.discriminatedUnion('type', [
      z.object({ type: z.literal('a'), size: z.string() }),
      z.object({ type: z.literal('b'), size: z.int() }),
    ]);
    expect(() => structuralSchema(union, 'spec.action')).toThrow('spec.action.size is declared differently');
  });
});

describe('text forms', () => {
  it.each(['0', '500ms', '1h30m', '1.5h', '-2s', '.5s', '10µs'])('%s is a duration', (text) => {
    expect(duration().safeParse(text).success).toBe(true);
  });
  it.each(['', '1', '1d', 'h', '1 h', '1h-', '5M'])('"%s" is no duration', (text) => {
    expect(duration().safeParse(text).success).toBe(false);
  });
  it.each([2, '2', '500m', '10Gi', '1e3', '.5', '-1k'])('%s is a quantity', (value) => {
    expect(quantity().safeParse(value).success).toBe(true);
  });
  it.each(['10GB', '', 'Gi', 1.5, '1 Gi'])('%s is no quantity', (value) => {
    expect(quantity().safeParse(value).success).toBe(false);
  });
});
