/** The columns of `kubectl get`, checked against the schema: a misspelt path would show an empty column. */
import type { PrinterColumn } from './define-schema.ts';
import type { JSONSchemaProps } from './json-schema-props.ts';

export interface CrdColumn {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly description?: string;
  readonly priority?: number;
}

const AGE: CrdColumn = {
  name: 'Age',
  type: 'date',
  description: 'Time since the object was made.',
  jsonPath: '.metadata.creationTimestamp',
};

export function printerColumns(columns: readonly PrinterColumn[], root: JSONSchemaProps): CrdColumn[] {
  const ours = columns.map(({ name, type, description, jsonPath, priority }) => ({
    name,
    type: type ?? typeAt(jsonPath, root) ?? 'string',
    ...(description !== undefined && { description }),
    jsonPath,
    ...(priority !== undefined && { priority }),
  }));
  return ours.some(({ name }) => name === AGE.name) ? ours : [...ours, AGE];
}

/** Undefined where the path is more than plain fields, or leads into what has no schema. */
function typeAt(jsonPath: string, root: JSONSchemaProps): CrdColumn['type'] | undefined {
  if (!jsonPath.startsWith('.')) throw new Error(`the column path "${jsonPath}" must start with a dot`);
  const names = jsonPath.slice(1).split('.');
  if (!names.every((name) => /^\w+$/.test(name)) || names[0] === 'metadata') return undefined;
  let schema: JSONSchemaProps | undefined = root;
  for (const name of names) {
    if (schema.properties === undefined) return undefined;
    schema = schema.properties[name];
    if (!schema) throw new Error(`the column path "${jsonPath}" leads nowhere: there is no field "${name}"`);
  }
  if (schema.format === 'date-time') return 'date';
  return schema.type === 'object' || schema.type === 'array' ? 'string' : schema.type;
}
