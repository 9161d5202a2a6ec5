/** For `node --import`: the package by its name is this checkout, as if it were installed. */
import { registerHooks } from 'node:module';

const FACES: Readonly<Record<string, string>> = {
  'taskflow-operator': '../../src/index.ts',
  'taskflow-operator/testing': '../../src/testing/index.ts',
  'taskflow-operator/local-cluster': '../../src/local-cluster/index.ts',
};

registerHooks({
  resolve(specifier, context, next) {
    const face = FACES[specifier];
    return face === undefined
      ? next(specifier, context)
      : { url: new URL(face, import.meta.url).href, shortCircuit: true };
  },
});
