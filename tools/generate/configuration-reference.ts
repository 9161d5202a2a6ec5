/** docs/configuration.md: every setting of the operator, from its schema. */
import { loadConfig, variableOf } from '../../src/runtime/config/load.ts';
import { knownKeys } from '../../src/runtime/config/schema.ts';

export async function configurationReference(): Promise<Readonly<Record<string, string>>> {
  const defaults = loadConfig({ env: {}, defaultFiles: [] });
  const rows = knownKeys().map(
    (key) => `| \`${key}\` | \`TASKFLOW_${variableOf(key)}\` | ${shown(valueAt(defaults, key))} |`,
  );
  const text = [
    '# Configuration',
    'Made by `npm run generate`; do not edit. Times are given as durations (`15s`, `1h30m`) and shown here in milliseconds; those of the section `time` are whole seconds.',
    'Settings come from defaults, a YAML file (`--config`, `taskflow-operator.yaml`), the environment and flags, each stronger than the one before. A key that nobody knows is an error. The section `time` is also read from `OB_OPERATOR_TIME_…`; `DISABLE_WEBHOOKS=true` is honoured.',
    ['| setting | environment | default |', '| --- | --- | --- |', ...rows].join('\n'),
  ];
  return { 'docs/configuration.md': text.join('\n\n') };
}

function valueAt(value: unknown, key: string): unknown {
  return key.split('.').reduce<unknown>((at, part) => (at as Record<string, unknown>)[part], value);
}

function shown(value: unknown): string {
  if (value === '' || (Array.isArray(value) && value.length === 0)) return '';
  return `\`${String(value)}\``;
}
