/** Kinds of third parties: modules whose default export is a System. */
import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf } from '../../kube/thrown.ts';
import type { System } from '../../resource-managers/kind.ts';

export interface LoadedPlugins {
  readonly systems: readonly System[];
  /** One text per module that could not be loaded. */
  readonly failures: readonly string[];
}

export async function loadPlugins(modules: readonly string[]): Promise<LoadedPlugins> {
  const systems: System[] = [];
  const failures: string[] = [];
  for (const module of modules) {
    try {
      systems.push(await loadPlugin(module));
    } catch (error) {
      failures.push(`${module}: ${messageOf(error)}`);
    }
  }
  return { systems, failures };
}

async function loadPlugin(module: string): Promise<System> {
  const isFile = module.startsWith('.') || isAbsolute(module);
  const { default: system } = (await import(isFile ? pathToFileURL(resolve(module)).href : module)) as {
    default?: unknown;
  };
  if (!isSystem(system))
    throw new Error('its default export is no system: { name, kinds: [{ schema, rbac, … }] }');
  return system;
}

function isSystem(value: unknown): value is System {
  if (typeof value !== 'object' || value === null) return false;
  const { name, kinds } = value as Partial<System>;
  return typeof name === 'string' && Array.isArray(kinds) && kinds.every((kind) => typeof kind === 'object');
}

/** A kind that two systems define would be reconciled by both. */
export function refuseDoubles(systems: readonly System[]): void {
  const seen = new Map<string, string>();
  for (const { name, kinds } of systems) {
    for (const { schema } of kinds) {
      const kind = `${schema.kind}.${schema.group}`;
      const other = seen.get(kind);
      if (other !== undefined) throw new Error(`kind ${kind} is defined twice: by ${other} and by ${name}`);
      seen.set(kind, name);
    }
  }
}
