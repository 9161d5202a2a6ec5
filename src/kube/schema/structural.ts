/**
 * From a zod schema to the structural schema of a CRD: every field has one
 * type, known without looking at values. What zod can say and a structural
 * schema cannot is either left to the webhook (refinements, keys of records,
 * defaults that differ from one variant to the next) or refused here with the
 * field's path, because the stored object would not be what the type claims.
 */
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { completeDefault } from './complete-default.ts';
import type { JSONSchemaProps, JsonValue } from './json-schema-props.ts';
import {
  checksOf,
  fixedValuesLeaf,
  internalsOf,
  type Leaf,
  numberLeaf,
  stringLeaf,
  templateLeaf,
} from './leaf-schema.ts';
import { NotStructuralError } from './not-structural-error.ts';
import { type ConvertedVariant, mergeVariants } from './variants.ts';
import { mergeScalars } from './scalar-union.ts';

/** Where the conversion stands: the path a user would write, and the schemas around it. */
interface Place {
  readonly path: string;
  readonly around: readonly z.core.$ZodType[];
}

export function structuralSchema(schema: z.ZodType, path = ''): JSONSchemaProps {
  return convert(schema, { path, around: [] });
}

function convert(schema: z.core.$ZodType, place: Place): JSONSchemaProps {
  if (place.around.includes(schema))
    return refuse(place, 'recursive', 'write preserveUnknownFields() for the part that contains itself');
  const inner = { path: place.path, around: [...place.around, schema] };
  return withMeta(schema, bare(schema as z.core.$ZodTypes, inner), place);
}

function bare(schema: z.core.$ZodTypes, place: Place): JSONSchemaProps {
  const { def } = internalsOf(schema);
  switch (def.type) {
    case 'string':
      return leaf(stringLeaf(schema as z.core.$ZodString), place);
    case 'number':
      return leaf(numberLeaf(schema as z.core.$ZodNumber), place);
    case 'template_literal':
      return leaf(templateLeaf(schema as z.core.$ZodTemplateLiteral), place);
    case 'boolean':
      return def.coerce === true
        ? refuse(place, 'a coerced value', 'write z.boolean()')
        : { type: 'boolean' };
    case 'enum':
      return leaf(fixedValuesLeaf([...new Set(enumValues(def.entries))]), place);
    case 'literal':
      return leaf(fixedValuesLeaf(def.values), place);
    case 'object':
      return objectSchema(def, place);
    case 'array':
      return { type: 'array', items: convert(def.element, below(place, '[]')), ...arrayBounds(schema) };
    case 'record':
      return recordSchema(def, place);
    case 'union':
      return unionSchema(def, place);
    case 'any':
    case 'unknown':
      return anyValue(schema, place);
    case 'optional':
    case 'nonoptional':
    case 'readonly':
      return convert(def.innerType, place);
    case 'nullable':
      return nullable(convert(def.innerType, place), place);
    case 'default':
    case 'prefault':
      return withDefault(convert(def.innerType, place), def, place);
    case 'lazy':
      return convert(def.getter(), place);
    case 'pipe':
    case 'transform':
    case 'intersection':
    case 'tuple':
    case 'bigint':
    case 'date':
    case 'map':
    case 'set':
    case 'null':
    case 'nan':
    case 'catch':
    case 'undefined':
    case 'void':
    case 'never':
    case 'symbol':
    case 'function':
    case 'promise':
    case 'file':
    case 'success':
    case 'custom':
      return refuse(place, ...obstacleOf(def.type));
  }
}

type Refused =
  | 'pipe'
  | 'transform'
  | 'intersection'
  | 'tuple'
  | 'bigint'
  | 'date'
  | 'map'
  | 'set'
  | 'null'
  | 'nan'
  | 'catch'
  | 'undefined'
  | 'void'
  | 'never'
  | 'symbol'
  | 'function'
  | 'promise'
  | 'file'
  | 'success'
  | 'custom';

/** What it is, and what to write instead. */
function obstacleOf(type: Refused): [found: string, instead: string] {
  switch (type) {
    case 'pipe':
    case 'transform':
      return ['a transform', 'declare the form that is stored, and convert it where it is used'];
    case 'intersection':
      return ['an intersection', 'write one object: a.extend(b.shape)'];
    case 'tuple':
      return ['a tuple', 'write an object with named fields'];
    case 'bigint':
      return ['a bigint', 'write z.int(), or a string with .regex()'];
    case 'date':
      return ['a Date', 'write timestamp()'];
    case 'map':
      return ['a Map', 'write z.record()'];
    case 'set':
      return ['a Set', 'write listSet(z.array(…))'];
    case 'null':
      return ['always null', 'write .nullable() on a type'];
    case 'nan':
      return ['NaN', 'write z.number()'];
    case 'catch':
      return ['a value that hides its faults (.catch)', 'write .default()'];
    case 'undefined':
    case 'void':
    case 'never':
      return ['a field that never has a value', 'leave the field out'];
    case 'symbol':
    case 'function':
    case 'promise':
    case 'file':
    case 'success':
    case 'custom':
      return [`of the type ${type}, which JSON does not have`, 'write the JSON that is stored'];
  }
}

function leaf(result: Leaf, place: Place): JSONSchemaProps {
  return 'schema' in result ? result.schema : refuse(place, result.obstacle.found, result.obstacle.instead);
}

function objectSchema(def: z.core.$ZodObjectDef, place: Place): JSONSchemaProps {
  const rest = def.catchall && internalsOf(def.catchall).def.type;
  const named = Object.keys(def.shape).length > 0;
  // `never` is a strict object: the API server prunes unknown fields, or warns of them, by itself.
  const open = rest === 'unknown' || rest === 'any';
  if (def.catchall && rest !== 'never' && !open) {
    if (named)
      return refuse(place, 'an object with named fields and a catchall', 'put the others into a z.record()');
    return { type: 'object', additionalProperties: convert(def.catchall, below(place, '.*')) };
  }
  return {
    type: 'object',
    ...(named && propertiesOf(def.shape, place)),
    ...(open && { 'x-kubernetes-preserve-unknown-fields': true }),
  };
}

function propertiesOf(
  shape: z.core.$ZodShape,
  place: Place,
): Pick<JSONSchemaProps, 'required' | 'properties'> {
  const entries = Object.entries(shape);
  const required = entries
    .filter(([, field]) => internalsOf(field).optin === undefined)
    .map(([name]) => name);
  return {
    ...(required.length > 0 && { required: required.toSorted() }),
    properties: Object.fromEntries(
      entries.map(([name, field]) => [name, convert(field, below(place, `.${name}`))]),
    ),
  };
}

function recordSchema(def: z.core.$ZodRecordDef, place: Place): JSONSchemaProps {
  const names = internalsOf(def.keyType).values;
  // The keys' own checks have no place in a structural schema; the webhook makes them.
  if (names === undefined)
    return { type: 'object', additionalProperties: convert(def.valueType, below(place, '.*')) };
  const shape = Object.fromEntries([...names].map((name) => [String(name), def.valueType]));
  const { required, properties } = propertiesOf(shape, place);
  const partial = 'partial' in def && def.partial;
  return { type: 'object', ...(required && !partial && { required }), ...(properties && { properties }) };
}

/** The API server never finds null in an enum, not even where the enum has it. */
function nullable(schema: JSONSchemaProps, place: Place): JSONSchemaProps {
  if (schema.enum)
    return refuse(place, 'a nullable enum', 'write .optional(): the API server drops a null by itself');
  return { ...schema, nullable: true };
}

function unionSchema(def: z.core.$ZodUnionDef, place: Place): JSONSchemaProps {
  if ('discriminator' in def) return variantsSchema(def as z.core.$ZodDiscriminatedUnionDef, place);
  const options = def.options.filter((option) => internalsOf(option).def.type !== 'null');
  const withNull = options.length < def.options.length;
  const finish = (schema: JSONSchemaProps): JSONSchemaProps => (withNull ? nullable(schema, place) : schema);
  const [only, ...others] = options;
  if (only && others.length === 0) return finish(convert(only, place));
  const merged = mergeScalars(options.map((option) => convert(option, place)));
  if (merged) return finish(merged);
  return refuse(
    place,
    'a union of different types',
    'write z.discriminatedUnion() for objects, intOrString() for numbers or text, preserveUnknownFields() for anything',
  );
}

function variantsSchema(def: z.core.$ZodDiscriminatedUnionDef, place: Place): JSONSchemaProps {
  const { discriminator } = def;
  const variants = def.options.map((option): ConvertedVariant => {
    const inner = internalsOf(option).def as z.core.$ZodObjectDef;
    const tag = inner.type === 'object' ? inner.shape[discriminator] : undefined;
    const values = tag && internalsOf(tag).values;
    if (!values)
      return refuse(
        place,
        'a union of unions',
        `write one z.discriminatedUnion('${discriminator}', …) of objects`,
      );
    const loose = inner.catchall !== undefined && internalsOf(inner.catchall).def.type !== 'never';
    return { values: [...values] as (string | number | boolean)[], loose, schema: convert(option, place) };
  });
  const merged = mergeVariants(discriminator, variants);
  if ('schema' in merged) return merged.schema;
  return refuse(
    below(place, `.${merged.conflict}`),
    'declared differently in two variants of a union',
    'give it one schema, or each variant a field of its own',
  );
}

function anyValue(schema: z.core.$ZodType, place: Place): JSONSchemaProps {
  if (z.globalRegistry.get(schema)?.['x-kubernetes-preserve-unknown-fields'] === true) return {};
  return refuse(place, 'of any type', 'write preserveUnknownFields() or anyValue() if that is meant');
}

function arrayBounds(schema: z.core.$ZodType): Pick<JSONSchemaProps, 'minItems' | 'maxItems'> {
  let minItems: number | undefined;
  let maxItems: number | undefined;
  for (const check of checksOf(schema)) {
    if (check.check === 'min_length') minItems = check.minimum;
    if (check.check === 'max_length') maxItems = check.maximum;
    if (check.check === 'length_equals') minItems = maxItems = check.length;
  }
  return { ...(minItems !== undefined && { minItems }), ...(maxItems !== undefined && { maxItems }) };
}

/** A default that is another value at every look (a random name) is the webhook's to set. */
function withDefault(
  schema: JSONSchemaProps,
  def: z.core.$ZodDefaultDef | z.core.$ZodPrefaultDef,
  place: Place,
): JSONSchemaProps {
  const value = def.defaultValue;
  if (!isDeepStrictEqual(value, def.defaultValue)) return schema;
  const json = JSON.parse(JSON.stringify(value) ?? 'null') as JsonValue;
  if (!isDeepStrictEqual(json, value))
    return refuse(place, 'defaulted to something that is not JSON', 'write the default as plain JSON');
  return { ...schema, default: completeDefault(json, schema) };
}

/** TypeScript's numeric enums also map numbers back to names. */
function enumValues(entries: Readonly<Record<string, string | number>>): (string | number)[] {
  const numbers = new Set(Object.values(entries).filter((value) => typeof value === 'number'));
  return Object.entries(entries)
    .filter(([name]) => !numbers.has(Number(name)))
    .map(([, value]) => value);
}

/** Fields of .meta() that are taken over as they are. */
const META_FIELDS = new Set([
  'title',
  'example',
  'format',
  'pattern',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-validations',
]);

function withMeta(schema: z.core.$ZodType, bareSchema: JSONSchemaProps, place: Place): JSONSchemaProps {
  const meta = z.globalRegistry.get(schema) ?? {};
  const unknown = Object.keys(meta).find((key) => key.startsWith('x-') && !META_FIELDS.has(key));
  if (unknown !== undefined)
    return refuse(place, `marked with ${unknown}`, 'use the functions of kubernetes-types.ts');
  const taken = Object.fromEntries(Object.entries(meta).filter(([key]) => META_FIELDS.has(key)));
  const inherited = bareSchema['x-kubernetes-validations'] ?? [];
  const own = (meta['x-kubernetes-validations'] ?? []) as typeof inherited;
  const rules = [...inherited, ...own];
  const { description = bareSchema.description } = meta;
  return {
    ...(description !== undefined && { description }),
    ...withoutDescription(bareSchema),
    ...taken,
    ...(rules.length > 0 && { 'x-kubernetes-validations': rules }),
  };
}

function withoutDescription(schema: JSONSchemaProps): JSONSchemaProps {
  const { description: _, ...rest } = schema;
  return rest;
}

function below(place: Place, step: string): Place {
  return { ...place, path: `${place.path}${step}`.replace(/^\./, '') };
}

function refuse(place: Place, found: string, instead: string): never {
  throw new NotStructuralError({ path: place.path, found, instead });
}
