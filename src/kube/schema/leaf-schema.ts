/**
 * Strings, numbers and fixed values. The checks are read from the zod schema
 * and not from z.toJSONSchema, which loses the flags of a regular expression
 * and bounds every integer by what JavaScript can count to.
 */
import type * as z from 'zod';
import { goPattern } from './go-pattern.ts';
import type { JSONSchemaProps, ValueValidation } from './json-schema-props.ts';

/** What keeps a leaf from being structural. */
export interface Obstacle {
  readonly found: string;
  readonly instead: string;
}

export type Leaf = { readonly schema: JSONSchemaProps } | { readonly obstacle: Obstacle };

/** Formats that the API server checks itself, by the name that zod gives them. */
const FORMATS: Readonly<Record<string, string>> = {
  email: 'email',
  uuid: 'uuid',
  guid: 'uuid',
  url: 'uri',
  ipv4: 'ipv4',
  ipv6: 'ipv6',
  cidrv4: 'cidr',
  cidrv6: 'cidr',
  mac: 'mac',
  hostname: 'hostname',
  datetime: 'date-time',
  date: 'date',
  base64: 'byte',
};

const REWRITES: Obstacle = {
  found: 'a string that zod rewrites (trim, toLowerCase, …)',
  instead: 'refuse other spellings with .regex() or .refine() and store what the user wrote',
};

/** The side of a schema that zod keeps for libraries. */
export function internalsOf<S extends z.core.$ZodType>({ _zod: internals }: S): S['_zod'] {
  return internals;
}

export const COERCION: Obstacle = {
  found: 'a coerced value',
  instead: 'write the type that is stored, or intOrString()',
};

export function stringLeaf(schema: z.core.$ZodString): Leaf {
  const def = internalsOf(schema).def;
  if (def.coerce === true) return { obstacle: COERCION };
  const validation: { -readonly [Key in keyof ValueValidation]: ValueValidation[Key] } = {};
  const patterns: string[] = [];
  for (const check of checksOf(schema)) {
    switch (check.check) {
      case 'min_length':
        validation.minLength = Math.max(validation.minLength ?? 0, check.minimum);
        break;
      case 'max_length':
        validation.maxLength = Math.min(validation.maxLength ?? Infinity, check.maximum);
        break;
      case 'length_equals':
        validation.minLength = validation.maxLength = check.length;
        break;
      case 'string_format': {
        const format = FORMATS[check.format];
        if (format !== undefined) validation.format = format;
        else if (check.pattern) {
          const pattern = goPattern(check.pattern);
          if (pattern === undefined) return { obstacle: notForGo(check.pattern) };
          patterns.push(pattern);
        }
        break;
      }
      case 'overwrite':
        return { obstacle: REWRITES };
      case 'custom':
        // The webhook makes it.
        break;
      case 'number_format':
      case 'greater_than':
      case 'less_than':
      case 'multiple_of':
        // Of numbers.
        break;
    }
  }
  return { schema: { type: 'string', ...validation, ...patternsOf(patterns) } };
}

export function templateLeaf(schema: z.core.$ZodTemplateLiteral): Leaf {
  const expression = internalsOf(schema).pattern;
  const pattern = goPattern(expression);
  return pattern === undefined ? { obstacle: notForGo(expression) } : { schema: { type: 'string', pattern } };
}

function notForGo(pattern: RegExp): Obstacle {
  return {
    found: `matched by ${String(pattern)}, which Go's regular expressions cannot say`,
    instead:
      'leave out lookaround and backreferences, or check it with .refine() (then only the webhook does)',
  };
}

function patternsOf(patterns: readonly string[]): Pick<JSONSchemaProps, 'pattern' | 'allOf'> {
  const [first, ...more] = patterns;
  if (first === undefined) return {};
  return more.length === 0 ? { pattern: first } : { allOf: patterns.map((pattern) => ({ pattern })) };
}

interface Bound {
  readonly value: number;
  readonly inclusive: boolean;
}

/** What a number format means in a CRD; bounds only where the format there is wider. */
const NUMBER_FORMATS: Readonly<
  Record<z.core.$ZodNumberFormats, Pick<JSONSchemaProps, 'type' | 'format' | 'minimum' | 'maximum'>>
> = {
  safeint: { type: 'integer', format: 'int64' },
  int32: { type: 'integer', format: 'int32' },
  uint32: { type: 'integer', format: 'int64', minimum: 0, maximum: 2 ** 32 - 1 },
  float32: { type: 'number', format: 'float' },
  float64: { type: 'number', format: 'double' },
};

export function numberLeaf(schema: z.core.$ZodNumber): Leaf {
  if (internalsOf(schema).def.coerce === true) return { obstacle: COERCION };
  let base: JSONSchemaProps = { type: 'number' };
  let low: Bound | undefined;
  let high: Bound | undefined;
  let multipleOf: number | undefined;
  for (const check of checksOf(schema)) {
    switch (check.check) {
      case 'number_format':
        base = NUMBER_FORMATS[check.format as z.core.$ZodNumberFormats];
        break;
      case 'greater_than':
        low = tighter(low, { value: Number(check.value), inclusive: check.inclusive }, 1);
        break;
      case 'less_than':
        high = tighter(high, { value: Number(check.value), inclusive: check.inclusive }, -1);
        break;
      case 'multiple_of':
        multipleOf = Number(check.value);
        break;
      case 'overwrite':
        return { obstacle: { ...REWRITES, found: 'a number that zod rewrites' } };
      case 'custom':
        // The webhook makes it.
        break;
      case 'min_length':
      case 'max_length':
      case 'length_equals':
      case 'string_format':
        // Of strings.
        break;
    }
  }
  const bounds = base.type === 'integer' ? integerBounds(base, low, high) : realBounds(low, high);
  return { schema: { ...base, ...bounds, ...(multipleOf !== undefined && { multipleOf }) } };
}

function tighter(old: Bound | undefined, bound: Bound, sign: 1 | -1): Bound {
  if (!old) return bound;
  if (old.value === bound.value) return { value: old.value, inclusive: old.inclusive && bound.inclusive };
  return sign * (bound.value - old.value) > 0 ? bound : old;
}

/** Above 0 is from 1 on, and reads better so in an error. */
function integerBounds(
  base: JSONSchemaProps,
  low: Bound | undefined,
  high: Bound | undefined,
): ValueValidation {
  const from = low && (low.inclusive ? Math.ceil(low.value) : Math.floor(low.value) + 1);
  const to = high && (high.inclusive ? Math.floor(high.value) : Math.ceil(high.value) - 1);
  const minimum = Math.max(from ?? -Infinity, base.minimum ?? -Infinity);
  const maximum = Math.min(to ?? Infinity, base.maximum ?? Infinity);
  return { ...(Number.isFinite(minimum) && { minimum }), ...(Number.isFinite(maximum) && { maximum }) };
}

function realBounds(low: Bound | undefined, high: Bound | undefined): ValueValidation {
  return {
    ...(low && { minimum: low.value, ...(!low.inclusive && { exclusiveMinimum: true }) }),
    ...(high && { maximum: high.value, ...(!high.inclusive && { exclusiveMaximum: true }) }),
  };
}

/** Enums and literals. */
export function fixedValuesLeaf(values: readonly unknown[]): Leaf {
  const type = commonType(values);
  if (type === undefined)
    return {
      obstacle: {
        found: `one of fixed values of several types (${values.map((value) => typeof value).join(', ')})`,
        instead: 'use values of one type: strings, numbers or booleans',
      },
    };
  return { schema: { type, enum: values as (string | number | boolean)[] } };
}

function commonType(values: readonly unknown[]): 'string' | 'integer' | 'number' | 'boolean' | undefined {
  if (values.length === 0) return undefined;
  if (values.every((value) => typeof value === 'string')) return 'string';
  if (values.every((value) => typeof value === 'boolean')) return 'boolean';
  if (values.every((value) => Number.isInteger(value))) return 'integer';
  return values.every((value) => typeof value === 'number') ? 'number' : undefined;
}

type KnownCheck =
  | { readonly check: 'min_length'; readonly minimum: number }
  | { readonly check: 'max_length'; readonly maximum: number }
  | { readonly check: 'length_equals'; readonly length: number }
  | { readonly check: 'string_format'; readonly format: string; readonly pattern?: RegExp }
  | { readonly check: 'number_format'; readonly format: string }
  | { readonly check: 'greater_than' | 'less_than'; readonly value: unknown; readonly inclusive: boolean }
  | { readonly check: 'multiple_of'; readonly value: unknown }
  | { readonly check: 'overwrite' | 'custom' };

/** A format such as z.email() is a check of itself, and comes first. */
export function checksOf(schema: z.core.$ZodType): readonly KnownCheck[] {
  const { def, traits } = internalsOf(schema);
  const own = traits.has('$ZodCheck') ? [def as unknown as KnownCheck] : [];
  return [...own, ...(def.checks ?? []).map(({ _zod: internals }) => internals.def as unknown as KnownCheck)];
}
