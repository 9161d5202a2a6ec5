/**
 * A discriminated union as one object: the fields of all variants side by
 * side, and CEL rules for which of them belong to which value of the
 * discriminator. Defaults of a field that not every variant has are left out:
 * the API server would set them on the wrong variants. The webhook sets them.
 */
import { isDeepStrictEqual } from 'node:util';
import { celAmong, celField, inWords } from './cel-text.ts';
import type { CelRule, JSONSchemaProps } from './json-schema-props.ts';

export interface ConvertedVariant {
  readonly values: readonly (string | number | boolean)[];
  /** Takes fields that it does not name, so also those of other variants. */
  readonly loose: boolean;
  readonly schema: JSONSchemaProps;
}

/** The schema, or the name of a field that two variants declare differently. */
export function mergeVariants(
  discriminator: string,
  variants: readonly ConvertedVariant[],
): { readonly schema: JSONSchemaProps } | { readonly conflict: string } {
  const names = [...new Set(variants.flatMap(({ schema }) => Object.keys(schema.properties ?? {})))];
  const properties: Record<string, JSONSchemaProps> = {};
  const rules: CelRule[] = variants.flatMap(({ schema }) => schema['x-kubernetes-validations'] ?? []);
  for (const name of names) {
    const field = name === discriminator ? discriminatorField(name, variants) : commonField(name, variants);
    if (!field) return { conflict: name };
    properties[name] = field;
    if (name !== discriminator) rules.push(...fieldRules(discriminator, name, variants));
  }
  const required = names.filter((name) => variants.every((variant) => isRequired(variant, name)));
  const open = variants.some(({ schema }) => schema['x-kubernetes-preserve-unknown-fields']);
  return {
    schema: {
      type: 'object',
      ...(required.length > 0 && { required: required.toSorted() }),
      properties,
      ...(open && { 'x-kubernetes-preserve-unknown-fields': true }),
      ...(rules.length > 0 && { 'x-kubernetes-validations': rules }),
    },
  };
}

function discriminatorField(name: string, variants: readonly ConvertedVariant[]): JSONSchemaProps {
  const declared = variants.map(({ schema }) => schema.properties?.[name] ?? {});
  const description = declared.find((field) => field.description !== undefined)?.description;
  const type = declared[0]?.type;
  return {
    ...(description !== undefined && { description }),
    ...(type !== undefined && { type }),
    enum: variants.flatMap(({ values }) => values),
  };
}

function commonField(name: string, variants: readonly ConvertedVariant[]): JSONSchemaProps | undefined {
  const declared = variants.flatMap(({ schema }) => schema.properties?.[name] ?? []);
  const [first] = declared;
  if (!first || !declared.every((field) => isDeepStrictEqual(essence(field), essence(first))))
    return undefined;
  const description = declared.find((field) => field.description !== undefined)?.description;
  const everywhere =
    declared.length === variants.length &&
    declared.every((field) => isDeepStrictEqual(field.default, first.default));
  return {
    ...(description !== undefined && { description }),
    ...essence(first),
    ...(everywhere && first.default !== undefined && { default: first.default }),
  };
}

/** What must be alike for two declarations to be of one field. */
function essence(field: JSONSchemaProps): JSONSchemaProps {
  const { description: _, default: __, ...rest } = field;
  return rest;
}

function fieldRules(
  discriminator: string,
  name: string,
  variants: readonly ConvertedVariant[],
): readonly CelRule[] {
  const has = `has(self.${celField(name)})`;
  const valuesOf = (some: readonly ConvertedVariant[]) => some.flatMap((variant) => variant.values);
  const demanding = variants.filter((variant) => isRequired(variant, name));
  const having = variants.filter((variant) => variant.loose || variant.schema.properties?.[name]);
  const rules: CelRule[] = [];
  if (demanding.length > 0 && demanding.length < variants.length)
    rules.push({
      rule: `${celAmong(discriminator, valuesOf(demanding), false)} || ${has}`,
      message: `${name} is required when ${discriminator} is ${inWords(valuesOf(demanding))}`,
      reason: 'FieldValueRequired',
      fieldPath: fieldPathOf(name),
    });
  if (having.length < variants.length)
    rules.push({
      rule: `${celAmong(discriminator, valuesOf(having))} || !${has}`,
      message: `${name} may be set only when ${discriminator} is ${inWords(valuesOf(having))}`,
      reason: 'FieldValueForbidden',
      fieldPath: fieldPathOf(name),
    });
  return rules;
}

function fieldPathOf(name: string): string {
  return /^\w+$/.test(name) ? `.${name}` : `['${name}']`;
}

function isRequired({ schema }: ConvertedVariant, name: string): boolean {
  return schema.required?.includes(name) ?? false;
}
