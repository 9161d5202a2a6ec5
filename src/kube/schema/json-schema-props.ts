/**
 * The part of apiextensions.k8s.io/v1 JSONSchemaProps that a structural schema
 * may use, under its JSON names. The official client's class renames fields
 * (`_default`, `x_kubernetes_list_type`), so it cannot be dumped to YAML as is.
 */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** A CEL rule that the API server itself checks. */
export interface CelRule {
  readonly rule: string;
  readonly message?: string;
  /** CEL that yields the message; wins over `message` if it evaluates to a line of text. */
  readonly messageExpression?: string;
  readonly reason?:
    'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  /** The field that the error names, relative to where the rule stands: `.memorySize`. */
  readonly fieldPath?: string;
  /** Evaluates a rule on `oldSelf` at creation too, where `oldSelf` is an empty optional. */
  readonly optionalOldSelf?: boolean;
}

/** Checks of a value that may also stand below anyOf and allOf. */
export interface ValueValidation {
  readonly minimum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly maximum?: number;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly enum?: readonly JsonValue[];
  readonly format?: string;
}

export interface JSONSchemaProps extends ValueValidation {
  readonly description?: string;
  readonly title?: string;
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly nullable?: boolean;
  readonly default?: JsonValue;
  readonly example?: JsonValue;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JSONSchemaProps>>;
  readonly additionalProperties?: JSONSchemaProps;
  readonly items?: JSONSchemaProps;
  readonly allOf?: readonly ValueValidation[];
  readonly anyOf?: readonly (ValueValidation & { readonly type?: 'integer' | 'string' })[];
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular';
  readonly 'x-kubernetes-int-or-string'?: true;
  readonly 'x-kubernetes-preserve-unknown-fields'?: true;
  readonly 'x-kubernetes-embedded-resource'?: true;
  readonly 'x-kubernetes-validations'?: readonly CelRule[];
}
