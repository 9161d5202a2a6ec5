/**
 * Pieces of schemas that Kubernetes gives a meaning of its own: how lists are
 * merged by server-side apply, quantities, durations, embedded objects, CEL.
 * Each is an ordinary zod schema; the meaning travels in its .meta().
 */
import * as z from 'zod';
import type { CelRule } from './json-schema-props.ts';

/** A list whose items are told apart by these fields: two appliers can own different items. */
export function listMap<Item extends z.ZodObject, List extends z.ZodArray<Item>>(
  list: List & z.ZodArray<Item>,
  keys: readonly (keyof Item['shape'] & string)[],
): List {
  return list.meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys });
}

/** A list of distinct scalars. */
export function listSet<List extends z.ZodArray>(list: List): List {
  return list.meta({ 'x-kubernetes-list-type': 'set' });
}

/** A list that one applier owns as a whole. */
export function atomicList<List extends z.ZodArray>(list: List): List {
  return list.meta({ 'x-kubernetes-list-type': 'atomic' });
}

/** An object that one applier owns as a whole: a selector, a reference. */
export function atomicObject<S extends z.ZodType>(object: S): S {
  return object.meta({ 'x-kubernetes-map-type': 'atomic' });
}

/** A rule that the API server checks, also when the webhook is off. */
export function cel<S extends z.ZodType>(
  schema: S,
  rule: string,
  message: string,
  options: Omit<CelRule, 'rule' | 'message'> = {},
): S {
  const earlier = (schema.meta()?.['x-kubernetes-validations'] ?? []) as readonly CelRule[];
  return schema.meta({ 'x-kubernetes-validations': [...earlier, { rule, message, ...options }] });
}

/** A field that keeps its first value. Setting an absent one later is not covered: a rule of its object must. */
export function immutable<S extends z.ZodType>(schema: S, message = 'field is immutable'): S {
  return cel(schema, 'self == oldSelf', message);
}

/** `80` or `"80%"` */
export function intOrString() {
  return z.union([z.int(), z.string()]);
}

/** An object whose fields are nobody's business here. */
export function preserveUnknownFields() {
  return z.looseObject({});
}

/** Any JSON at all. */
export function anyValue() {
  return z.unknown().meta({ 'x-kubernetes-preserve-unknown-fields': true });
}

/** A whole object of another kind, with apiVersion, kind and metadata. */
export function embeddedResource() {
  return z
    .looseObject({ apiVersion: z.string(), kind: z.string() })
    .meta({ 'x-kubernetes-embedded-resource': true });
}

const QUANTITY =
  /^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$/;

/** `2`, `"500m"`, `"10Gi"` */
export function quantity() {
  return z.union([z.int(), z.string().regex(QUANTITY, 'must be a quantity such as 500m, 2 or 10Gi')]);
}

const GO_DURATION = /^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$/;

/** A duration as Go writes it: `1h30m`, `500ms`. */
export function duration() {
  return z.string().regex(GO_DURATION, 'must be a duration such as 30s, 5m or 1h30m');
}

/** RFC 3339: `2026-11-18T12:00:00Z`. */
export function timestamp() {
  return z.iso.datetime({ offset: true, error: 'must be a time such as 2026-11-18T12:00:00Z' });
}

/** The metadata that a template gives to the objects made from it. */
export function embeddedMetadata() {
  const texts = z.record(z.string(), z.string());
  return z.object({
    name: z.string().optional(),
    namespace: z.string().optional(),
    labels: texts.optional(),
    annotations: texts.optional(),
    finalizers: z.array(z.string()).optional(),
  });
}

export function labelSelector() {
  const requirement = z.object({
    key: z.string().describe('Key of the label.'),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label is compared.'),
    values: atomicList(z.array(z.string())).optional().describe('What it is compared with.'),
  });
  return atomicObject(
    z.object({
      matchLabels: z.record(z.string(), z.string()).optional().describe('Labels that must be there.'),
      matchExpressions: atomicList(z.array(requirement)).optional().describe('All of these must hold.'),
    }),
  );
}

/** An object of the same namespace, by name. */
export function localReference() {
  return atomicObject(z.object({ name: z.string().min(1).describe('Name of the object.') }));
}

/** `status.conditions` as every Kubernetes kind has them. */
export function conditions() {
  const condition = z.object({
    type: z
      .string()
      .max(316)
      .regex(
        /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/,
      )
      .describe('What the condition is about.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
    observedGeneration: z.int().min(0).optional().describe('The generation that was looked at.'),
    lastTransitionTime: timestamp().describe('When the status changed last.'),
    reason: z
      .string()
      .min(1)
      .max(1024)
      .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
      .describe('One word for the cause, for programs.'),
    message: z.string().max(32768).describe('The cause, for people.'),
  });
  return listMap(z.array(condition), ['type']).describe('What is the case, by type.');
}
