/** What a kind says about its objects at admission, beyond what its schema says. */
import type { KubeClient } from '../kube/client.ts';
import type { KindObject, KindSchema, ObjectOf } from '../kube/schema/define-schema.ts';

/** One thing that is wrong with an object. */
export interface Fault {
  /** `spec.topology[1].replica`; empty for the object as a whole. */
  readonly path: string;
  /** Goes on where the path ends: `must be at least 1`. */
  readonly message: string;
}

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE';

export interface AdmissionContext<O> {
  readonly operation: Operation;
  /** The object as it is stored; undefined at its creation. */
  readonly old: O | undefined;
  readonly user: { readonly username: string; readonly groups: readonly string[] };
  /** Nothing will be stored, so nothing outside may be changed either. */
  readonly dryRun: boolean;
  /** Aborted when the time for the answer is over. */
  readonly signal: AbortSignal;
  readonly client: KubeClient;
}

/**
 * Methods and not properties on purpose: TypeScript then lets the rules of one
 * kind stand in a list of the rules of all kinds.
 */
export interface WebhookRules<O extends KindObject = KindObject> {
  /** Sets what the schema's own defaults cannot; runs after them. May change the object or return another. */
  defaults?(object: O, context: AdmissionContext<O>): O | Promise<O>;
  /**
   * Runs at creation and at every update but those of an object on its way out
   * that leave its spec alone. Other updates that leave the spec alone are not
   * refused for faults below `spec`: those were there before.
   */
  validate?(object: O, context: AdmissionContext<O>): readonly Fault[] | Promise<readonly Fault[]>;
  validateDelete?(object: O, context: AdmissionContext<O>): readonly Fault[] | Promise<readonly Fault[]>;
  /** Shown by kubectl; the object is stored all the same. */
  warnings?(object: O, context: AdmissionContext<O>): readonly string[] | Promise<readonly string[]>;
  /** What happens to objects while the webhook cannot be reached. Default: `Fail`. */
  readonly failurePolicy?: 'Fail' | 'Ignore';
  /** When validation is asked. Default: creation and update, and deletion where there is a rule for it. */
  readonly operations?: readonly Operation[];
}

export interface WebhookKind {
  readonly schema: KindSchema;
  readonly rules: WebhookRules;
}

/** Ties rules to their kind, so that TypeScript knows what they look at. */
export function webhookKind<K extends KindSchema>(
  schema: K,
  rules: WebhookRules<ObjectOf<K>> = {},
): WebhookKind {
  return { schema, rules };
}

export function validatedOperations(rules: WebhookRules): readonly Operation[] {
  return rules.operations ?? ['CREATE', 'UPDATE', ...(rules.validateDelete ? ['DELETE' as const] : [])];
}
