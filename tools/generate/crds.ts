/** crds/*.yaml: the CustomResourceDefinition of every kind. */
import { crdYaml } from '../../src/kube/schema/crd.ts';
import type { System } from '../../src/resource-managers/kind.ts';
import { SYSTEMS } from '../../src/resource-managers/systems.ts';

/** Plain `kubectl apply` keeps a copy of the object in an annotation of at most 256 KiB. */
const LARGEST_BYTES = 200 * 1024;

export async function crds(systems: readonly System[] = SYSTEMS): Promise<Readonly<Record<string, string>>> {
  const kinds = systems.flatMap((system) => system.kinds);
  return Object.fromEntries(
    kinds.map(({ schema }) => {
      const content = crdYaml(schema);
      if (Buffer.byteLength(content) > LARGEST_BYTES)
        throw new Error(
          `the CRD of ${schema.kind} is larger than ${LARGEST_BYTES} bytes: leave out descriptions`,
        );
      return [`crds/${schema.group}_${schema.plural}.yaml`, content];
    }),
  );
}
