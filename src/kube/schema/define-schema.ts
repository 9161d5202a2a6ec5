/** One declaration of a kind: the source of its TypeScript type, its CRD, its defaults and its validation. */
import type * as z from 'zod';
import { englishPlural } from './english-plural.ts';
import type { CelRule } from './json-schema-props.ts';
import type { KubeObject, ObjectMeta, ResourceType } from '../resource-type.ts';

/** A column of `kubectl get`. */
export interface PrinterColumn {
  readonly name: string;
  /** `.spec.size` */
  readonly jsonPath: string;
  /** Taken from the field that the path leads to, if left out. */
  readonly type?: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly description?: string;
  /** Above 0: shown only by `-o wide`. */
  readonly priority?: number;
}

export interface ScaleSubresource {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

export interface SchemaOptions<S extends z.ZodObject, T extends z.ZodObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** The English plural of the kind, if left out. */
  readonly plural?: string;
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  /** `kubectl get taskflow` lists every kind of ours: that category is always in. */
  readonly categories?: readonly string[];
  readonly scope?: 'Namespaced' | 'Cluster';
  readonly description?: string;
  readonly spec: S;
  readonly status: T;
  /** An Age column comes last by itself. */
  readonly columns?: readonly PrinterColumn[];
  /** CEL on the whole object. */
  readonly rules?: readonly CelRule[];
  readonly scale?: ScaleSubresource;
}

/** An object of a kind as it is stored. Status fields come one by one, so none can be counted on. */
export interface KindObject<
  S extends z.ZodObject = z.ZodObject,
  T extends z.ZodObject = z.ZodObject,
> extends KubeObject {
  metadata: ObjectMeta;
  spec: z.output<S>;
  status?: Partial<z.output<T>>;
}

export interface KindSchema<
  S extends z.ZodObject = z.ZodObject,
  T extends z.ZodObject = z.ZodObject,
> extends ResourceType<KindObject<S, T>> {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly description: string | undefined;
  readonly spec: S;
  readonly status: T;
  readonly columns: readonly PrinterColumn[];
  readonly rules: readonly CelRule[];
  readonly scale: ScaleSubresource | undefined;
}

export type ObjectOf<K extends KindSchema> =
  K extends KindSchema<infer S, infer T> ? KindObject<S, T> : never;

const CATEGORY = 'taskflow';

export function defineSchema<S extends z.ZodObject, T extends z.ZodObject>(
  options: SchemaOptions<S, T>,
): KindSchema<S, T> {
  const { group, version, kind, spec, status } = options;
  const schema = {
    group,
    version,
    kind,
    plural: options.plural ?? englishPlural(kind),
    namespaced: options.scope !== 'Cluster',
    singular: options.singular ?? kind.toLowerCase(),
    shortNames: options.shortNames ?? [],
    categories: [...new Set([CATEGORY, ...(options.categories ?? [])])],
    description: options.description,
    spec,
    status,
    columns: options.columns ?? [],
    rules: options.rules ?? [],
    scale: options.scale,
  };
  checkNames(schema);
  return schema;
}

/** The rules of the API server, told where the mistake is made and not at installation. */
function checkNames({ group, version, kind, plural, singular, shortNames }: KindSchema): void {
  const demands: readonly (readonly [what: string, value: string, form: RegExp, example: string])[] = [
    ['group', group, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/, 'apps.example.com'],
    ['version', version, /^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$/, 'v1alpha1'],
    ['kind', kind, /^[A-Z][A-Za-z0-9]*$/, 'BackupPolicy'],
    ...[plural, singular, ...shortNames].map(
      (name) => ['name', name, /^[a-z]([-a-z0-9]*[a-z0-9])?$/, 'backuppolicies'] as const,
    ),
  ];
  for (const [what, value, form, example] of demands)
    if (!form.test(value))
      throw new Error(`the kind ${kind}: the ${what} "${value}" is not of the form ${example}`);
}
