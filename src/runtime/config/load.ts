/**
 * Settings from four places, each stronger than the one before: defaults, a
 * YAML file, the environment, flags. A key that nobody knows is an error that
 * names the nearest known one, because a setting that is silently ignored is
 * found out at 3 a.m.
 */
import { readFileSync } from 'node:fs';
import { load as parseYaml } from 'js-yaml';
import { type Config, configSchema, knownKeys } from './schema.ts';
import { nearest } from './nearest.ts';

export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(
      faults.length === 1
        ? (faults[0] ?? '')
        : `the configuration has faults:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

export interface ConfigSources {
  /** `--config`; where absent, the first of DEFAULT_FILES that exists. */
  readonly file?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** From flags: `log.verbosity` → `1`. */
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly defaultFiles?: readonly string[];
}

export const DEFAULT_FILES = ['taskflow-operator.yaml', '/etc/taskflow-operator/taskflow-operator.yaml'];
const ENV_PREFIX = 'TASKFLOW_';
/** Of ob-operator; only for the constants that are its own. */
const ALIAS_PREFIX = 'OB_OPERATOR_';
const ALIAS_SECTIONS = ['time.'];
/** Variables with our prefix that are no settings of the operator. */
const NOT_SETTINGS = new Set(['TASKFLOW_ASSETS', 'TASKFLOW_DATA_DIR', 'TASKFLOW_PARENT_PIPE']);
const NO_SETTING = /^TASKFLOW_MOUNT_/;

/** A setting by its path, and where it came from. */
interface Setting {
  readonly path: string;
  readonly value: unknown;
  readonly origin: string;
}

export function loadConfig(sources: ConfigSources = {}): Config {
  const env = sources.env ?? process.env;
  const settings = [...fromFile(sources), ...fromEnvironment(env), ...fromFlags(sources.flags ?? {})];
  const known = knownKeys();
  const unknown = settings
    .filter(({ path }) => !known.includes(path))
    .map((setting) => unknownKey(setting, known));
  if (unknown.length > 0) throw new ConfigError(unknown);
  const strongest = new Map(settings.map((setting) => [setting.path, setting]));
  const parsed = configSchema.safeParse(nest([...strongest.values()]));
  if (parsed.success) return parsed.data;
  throw new ConfigError(
    parsed.error.issues.map(({ path, message }) => {
      const key = path.join('.');
      return `${strongest.get(key)?.origin ?? key}: ${message}`;
    }),
  );
}

function fromFile({ file, defaultFiles = DEFAULT_FILES }: ConfigSources): Setting[] {
  for (const path of file === undefined ? defaultFiles : [file]) {
    const text = readText(path, file !== undefined);
    if (text === undefined) continue;
    return flatten(parse(text, path), '').map((setting) => ({
      ...setting,
      origin: `${path}: ${setting.path}`,
    }));
  }
  return [];
}

function readText(path: string, mustExist: boolean): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (!mustExist && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new ConfigError([`${path}: ${(error as Error).message}`]);
  }
}

function parse(text: string, path: string): object {
  let content: unknown;
  try {
    content = parseYaml(text);
  } catch (error) {
    throw new ConfigError([`${path}: ${(error as Error).message}`]);
  }
  if (content === null || content === undefined) return {};
  if (typeof content !== 'object' || Array.isArray(content))
    throw new ConfigError([`${path}: must be a mapping of settings`]);
  return content;
}

function flatten(value: object, prefix: string): { path: string; value: unknown }[] {
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
    const path = prefix === '' ? key : `${prefix}.${key}`;
    const nested = typeof inner === 'object' && inner !== null && !Array.isArray(inner);
    return nested ? flatten(inner, path) : [{ path, value: inner }];
  });
}

function fromEnvironment(env: NodeJS.ProcessEnv): Setting[] {
  const byVariable = new Map(knownKeys().map((path) => [variableOf(path), path]));
  const aliases = [...byVariable].filter(([, path]) =>
    ALIAS_SECTIONS.some((section) => path.startsWith(section)),
  );
  const fromAliases = aliases.flatMap(([name, path]) => {
    const variable = ALIAS_PREFIX + name;
    const value = env[variable];
    return value === undefined ? [] : [{ path, value, origin: variable }];
  });
  const own = Object.entries(env)
    .filter(([variable]) => variable.startsWith(ENV_PREFIX))
    .filter(([variable]) => !NOT_SETTINGS.has(variable) && !NO_SETTING.test(variable))
    .map(([variable, value]) => {
      const name = variable.slice(ENV_PREFIX.length);
      return { path: byVariable.get(name) ?? variable, value, origin: variable };
    });
  return [...fromAliases, ...own];
}

/** `leaderElection.leaseDuration` → `LEADERELECTION_LEASEDURATION`, as ob-operator derives its names. */
export function variableOf(path: string): string {
  return path.replaceAll('.', '_').replaceAll('-', '').toUpperCase();
}

function fromFlags(flags: Readonly<Record<string, unknown>>): Setting[] {
  return Object.entries(flags)
    .filter(([, value]) => value !== undefined)
    .map(([path, value]) => ({ path, value, origin: `flag for ${path}` }));
}

function unknownKey({ path, origin }: Setting, known: readonly string[]): string {
  const isVariable = path.startsWith(ENV_PREFIX);
  const candidates = isVariable ? known.map((key) => ENV_PREFIX + variableOf(key)) : known;
  const guess = nearest(path, candidates);
  return `${origin}: no such setting${guess === undefined ? '' : `; did you mean ${guess}?`}`;
}

function nest(settings: readonly Setting[]): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const { path, value } of settings) {
    const keys = path.split('.');
    const last = keys.pop() ?? '';
    let at = root;
    for (const key of keys) at = (at[key] ??= {}) as Record<string, unknown>;
    at[last] = value;
  }
  return root;
}
