/** Unions whose options are alike enough for one structural field. */
import type { JSONSchemaProps, ValueValidation } from './json-schema-props.ts';

/** One field for all options; undefined if their types are too different. */
export function mergeScalars(options: readonly JSONSchemaProps[]): JSONSchemaProps | undefined {
  const types = new Set(options.map(({ type }) => type));
  if (types.size === 2 && types.has('integer') && types.has('string')) return intOrString(options);
  const [type] = types;
  if (types.size !== 1 || type === undefined || type === 'object' || type === 'array') return undefined;
  if (options.some((option) => option.nullable ?? option.default !== undefined)) return undefined;
  if (options.every((option) => option.enum)) {
    return { type, enum: [...new Set(options.flatMap((option) => option.enum ?? []))] };
  }
  const checks = options.map(validationOf);
  const unchecked = checks.some((check) => Object.keys(check).length === 0);
  return unchecked ? { type } : { type, anyOf: checks };
}

/** Checks of numbers do not look at strings, nor those of strings at numbers: both may stand side by side. */
function intOrString(options: readonly JSONSchemaProps[]): JSONSchemaProps | undefined {
  const texts = options.filter(({ type }) => type === 'string').map(validationOf);
  const numbers = options.filter(({ type }) => type === 'integer').map(validationOf);
  const [text = {}, number = {}] = [texts[0], numbers[0]];
  if (texts.length > 1 || numbers.length > 1 || text.enum || number.enum) return undefined;
  const { format: _, ...bounds } = number;
  return {
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    ...bounds,
    ...text,
    'x-kubernetes-int-or-string': true,
  };
}

function validationOf(schema: JSONSchemaProps): ValueValidation {
  const { type: _, description: __, title: ___, example: ____, ...validation } = schema;
  return validation;
}
