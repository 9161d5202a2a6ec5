/**
 * A default with the defaults of its own fields in it. The API server would
 * fill them in by itself, but it first checks the bare default against the CEL
 * rules, and those may count on the fields.
 */
import type { JSONSchemaProps, JsonObject, JsonValue } from './json-schema-props.ts';

export function completeDefault(value: JsonValue, schema: JSONSchemaProps): JsonValue {
  if (isList(value)) {
    const { items } = schema;
    return items ? value.map((item) => completeDefault(item, items)) : value;
  }
  if (typeof value !== 'object' || value === null) return value;
  const properties = Object.entries(schema.properties ?? {});
  const given = Object.entries(value).map(([name, field]) => [
    name,
    completeDefault(field, schema.properties?.[name] ?? schema.additionalProperties ?? {}),
  ]);
  const added = properties
    .filter(([name, field]) => !Object.hasOwn(value, name) && field.default !== undefined)
    .map(([name, field]) => [name, field.default]);
  return Object.fromEntries([...given, ...added]) as JsonObject;
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
