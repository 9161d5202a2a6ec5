/** Names and values as the CEL of the API server writes them. */

const RESERVED = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace ' +
    'return var void while'
  ).split(' '),
);

/** `namespace` → `__namespace__`, `x-y` → `x__dash__y`: how `self.` reaches such a field. */
export function celField(name: string): string {
  if (RESERVED.has(name)) return `__${name}__`;
  return name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
}

/** `self.type in ["a", "b"]`, or its opposite. */
export function celAmong(
  field: string,
  values: readonly (string | number | boolean)[],
  among: boolean = true,
): string {
  const [only, ...others] = values.map((value) => JSON.stringify(value));
  if (others.length === 0) return `self.${celField(field)} ${among ? '==' : '!='} ${only}`;
  const test = `self.${celField(field)} in [${[only, ...others].join(', ')}]`;
  return among ? test : `!(${test})`;
}

/** `"a", "b" or "c"` */
export function inWords(values: readonly (string | number | boolean)[]): string {
  const quoted = values.map((value) => JSON.stringify(value));
  return quoted.length < 2 ? quoted.join('') : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}
