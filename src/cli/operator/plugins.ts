/** Kinds of third parties: modules that export kinds, or a function that registers them. */
import { registerHooks } from 'node:module';
import { basename, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf } from '../../kube/thrown.ts';
import type { OperatorKind, System } from '../../resource-managers/kind.ts';
import type { FlowExtension } from '../../taskflow/flow-catalogue.ts';

export interface LoadedPlugins {
  readonly systems: readonly System[];
  /** One text per module that could not be loaded. */
  readonly failures: readonly string[];
}

export async function loadPlugins(modules: readonly string[]): Promise<LoadedPlugins> {
  const systems: System[] = [];
  const failures: string[] = [];
  if (modules.length > 0) resolveToThisProgram();
  for (const module of modules) {
    try {
      systems.push(await loadPlugin(module));
    } catch (error) {
      failures.push(`${module}: ${messageOf(error)}`);
    }
  }
  return { systems, failures };
}

/**
 * A plugin that imports `taskflow-operator` means the very program that loads
 * it, wherever its file is: another copy would have other classes.
 */
function resolveToThisProgram(): void {
  const here = import.meta.url;
  const extension = here.endsWith('.ts') ? '.ts' : '.js';
  const faces: Readonly<Record<string, string>> = {
    'taskflow-operator': new URL(`../../index${extension}`, here).href,
    'taskflow-operator/testing': new URL(`../../testing/index${extension}`, here).href,
    'taskflow-operator/local-cluster': new URL(`../../local-cluster/index${extension}`, here).href,
  };
  registerHooks({
    resolve(specifier, context, next) {
      const url = faces[specifier];
      return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
    },
  });
}

async function loadPlugin(module: string): Promise<System> {
  const isFile = module.startsWith('.') || isAbsolute(module);
  const loaded = (await import(isFile ? pathToFileURL(resolve(module)).href : module)) as Record<
    string,
    unknown
  >;
  const name = basename(module).replace(/\.[cm]?[jt]s$/, '');
  const { default: exported, register } = loaded;
  if (typeof register === 'function') return registered(name, register as Register);
  if (isSystem(exported)) return exported;
  const kinds = Array.isArray(exported) ? exported : [exported];
  if (kinds.length > 0 && kinds.every(isKind)) return { name, kinds };
  throw new Error(
    'it exports neither a kind (as default), nor a list of kinds, nor a system { name, kinds }, nor register(engine)',
  );
}

/** What `export function register(engine)` of a plugin gets. */
export interface Engine {
  registerKind(kind: OperatorKind): void;
  /** Inserts a task into a flow of somebody else, after or before one of its steps. */
  extendFlow(flow: string, extension: Omit<FlowExtension, 'flow'>): void;
}

type Register = (engine: Engine) => void | Promise<void>;

async function registered(name: string, register: Register): Promise<System> {
  const kinds: OperatorKind[] = [];
  const extensions: FlowExtension[] = [];
  await register({
    registerKind(kind) {
      if (!isKind(kind)) throw new Error('registerKind takes what defineKind returns');
      kinds.push(kind);
    },
    extendFlow: (flow, extension) => void extensions.push({ flow, ...extension }),
  });
  return { name, kinds, extensions };
}

function isSystem(value: unknown): value is System {
  if (typeof value !== 'object' || value === null) return false;
  const { name, kinds } = value as Partial<System>;
  return typeof name === 'string' && Array.isArray(kinds) && kinds.every(isKind);
}

function isKind(value: unknown): value is OperatorKind {
  if (typeof value !== 'object' || value === null) return false;
  const { schema, rbac } = value as Partial<OperatorKind>;
  return typeof schema?.kind === 'string' && Array.isArray(rbac);
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
