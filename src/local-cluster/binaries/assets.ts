/** Programs that the user already has, in a directory named by the environment. */
import { resolve } from 'node:path';
import { type FoundPrograms, type Search, type Source, SourceNotConfiguredError } from './source.ts';
import { verifyPrograms } from './verify.ts';

export function assetsSource(variable: 'TASKFLOW_ASSETS' | 'KUBEBUILDER_ASSETS'): Source {
  return {
    name: variable,
    onlyLooks: true,
    async find({ env, signal }: Search): Promise<FoundPrograms> {
      const value = env[variable];
      if (value === undefined || value === '') throw new SourceNotConfiguredError('not set');
      const dir = resolve(value);
      return { dir, version: await verifyPrograms(dir, { versions: 'any', signal }) };
    },
  };
}
