/** The schema of a kind with flows: what its author declares, and what the engine adds to every status. */
import * as z from 'zod';
import {
  defineSchema as defineKubeSchema,
  type KindSchema,
  type PrinterColumn,
  type SchemaOptions,
} from '../kube/schema/define-schema.ts';
import { engineStatusShape } from './operation-context.ts';

const stateShape = { status: z.string().optional().describe('State of the object.') };
const phaseShape = { phase: z.string().optional().describe('State of the object.') };
type StateShape = typeof stateShape & typeof phaseShape;

/** The status of a kind with flows. */
export type FlowStatus<T extends z.ZodObject> = z.ZodObject<
  T['shape'] & typeof engineStatusShape & Partial<StateShape>
>;

export interface FlowSchemaOptions<S extends z.ZodObject, T extends z.ZodObject> extends SchemaOptions<S, T> {
  /** Field of the status that holds the state; default `status`. */
  readonly stateField?: 'status' | 'phase';
  /** Without the columns of the engine, for kinds whose upstream has others. */
  readonly ownColumnsOnly?: boolean;
}

export function defineSchema<S extends z.ZodObject, T extends z.ZodObject>(
  options: FlowSchemaOptions<S, T>,
): KindSchema<S, FlowStatus<T>> {
  const { stateField = 'status', ownColumnsOnly = false, status, columns = [], ...rest } = options;
  const state = stateField === 'status' ? stateShape : phaseShape;
  const shape = { ...state, ...engineStatusShape, ...status.shape };
  return defineKubeSchema({
    ...rest,
    status: z.object(shape),
    columns: ownColumnsOnly ? columns : [...columns, ...flowColumns(stateField)],
  });
}

function flowColumns(stateField: 'status' | 'phase'): PrinterColumn[] {
  return [
    { name: 'Status', jsonPath: `.status.${stateField}` },
    { name: 'Flow', jsonPath: '.status.operationContext.name' },
    { name: 'Task', jsonPath: '.status.operationContext.task' },
    { name: 'Progress', jsonPath: '.status.operationContext.progress.percent', type: 'number' },
    { name: 'Attempt', jsonPath: '.status.operationContext.attempt', priority: 1 },
    { name: 'Last Error', jsonPath: '.status.operationContext.lastError.message', priority: 1 },
  ];
}
