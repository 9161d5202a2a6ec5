/** Who set an annotation, as the API server remembers it. */
import type { KubeObject } from '../kube/resource-type.ts';

interface ManagedFields {
  readonly manager?: string;
  readonly fieldsV1?: {
    readonly 'f:metadata'?: { readonly 'f:annotations'?: Readonly<Record<string, unknown>> };
  };
}

export function fieldManagerOf({ metadata }: KubeObject, annotation: string): string {
  const managers =
    (metadata as { managedFields?: readonly ManagedFields[] } | undefined)?.managedFields ?? [];
  const field = `f:${annotation}`;
  const owner = managers.findLast(
    ({ fieldsV1 }) => fieldsV1?.['f:metadata']?.['f:annotations']?.[field] !== undefined,
  );
  return owner?.manager ?? 'somebody';
}
