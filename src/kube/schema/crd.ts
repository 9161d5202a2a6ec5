/** The CustomResourceDefinition of a kind. */
import { dump } from 'js-yaml';
import { completeDefault } from './complete-default.ts';
import type { KindSchema, ScaleSubresource } from './define-schema.ts';
import type { JSONSchemaProps } from './json-schema-props.ts';
import { NotStructuralError } from './not-structural-error.ts';
import { type CrdColumn, printerColumns } from './printer-columns.ts';
import { structuralSchema } from './structural.ts';
import { apiVersionOf, defineResource, type KubeObject, resourceName } from '../resource-type.ts';

export interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string;
    names: {
      kind: string;
      listKind: string;
      plural: string;
      singular: string;
      shortNames?: readonly string[];
      categories: readonly string[];
    };
    scope: 'Namespaced' | 'Cluster';
    versions: readonly CrdVersion[];
  };
  status?: {
    conditions?: readonly { type: string; status: string; reason?: string; message?: string }[];
    acceptedNames?: { kind: string; plural: string };
    storedVersions?: readonly string[];
  };
}

export interface CrdVersion {
  name: string;
  served: boolean;
  storage: boolean;
  additionalPrinterColumns: readonly CrdColumn[];
  schema: { openAPIV3Schema: JSONSchemaProps };
  subresources: { status: Record<string, never>; scale?: ScaleSubresource };
}

export const customResourceDefinitions = defineResource<CustomResourceDefinition>(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  'Cluster',
);

export function customResourceDefinition(kind: KindSchema): CustomResourceDefinition {
  const openAPIV3Schema = rootSchema(kind);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: resourceName(kind), labels: { 'app.kubernetes.io/part-of': 'taskflow-operator' } },
    spec: {
      group: kind.group,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        ...(kind.shortNames.length > 0 && { shortNames: kind.shortNames }),
        categories: kind.categories,
      },
      scope: kind.namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          additionalPrinterColumns: printerColumns(kind.columns, openAPIV3Schema),
          schema: { openAPIV3Schema },
          subresources: { status: {}, ...(kind.scale && { scale: kind.scale }) },
        },
      ],
    },
  };
}

/** js-yaml quotes what YAML 1.1 would take for something else (`on`, `yes`): kubectl reads it so. */
export function crdYaml(kind: KindSchema): string {
  return dump(customResourceDefinition(kind), { lineWidth: 110, noRefs: true });
}

function rootSchema(kind: KindSchema): JSONSchemaProps {
  const spec = structural(kind, 'spec');
  const { required: _, ...status } = structural(kind, 'status');
  return {
    ...(kind.description !== undefined && { description: kind.description }),
    type: 'object',
    ...(spec.required && { required: ['spec'] }),
    properties: {
      apiVersion: {
        description: `The group and version of the kind: ${apiVersionOf(kind)}.`,
        type: 'string',
      },
      kind: { description: `The kind: ${kind.kind}.`, type: 'string' },
      metadata: { type: 'object' },
      // Without a spec there would be nothing for its fields' defaults to be set on.
      spec: {
        description: `What is wanted.`,
        ...spec,
        ...(!spec.required && { default: completeDefault({}, spec) }),
      },
      // A status is written piece by piece, so no piece of it can be demanded.
      status: { description: `What is the case.`, ...status },
    },
    ...(kind.rules.length > 0 && { 'x-kubernetes-validations': kind.rules }),
  };
}

function structural(kind: KindSchema, part: 'spec' | 'status'): JSONSchemaProps {
  try {
    return structuralSchema(kind[part], part);
  } catch (error) {
    if (!(error instanceof NotStructuralError)) throw error;
    const { path, found, instead } = error;
    throw new NotStructuralError({ path, found, instead, kind: kind.kind });
  }
}
