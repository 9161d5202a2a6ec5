/**
 * Keeps passwords, tokens and keys out of everything that leaves the process:
 * logs, events, messages in a status. Rather one harmless word masked than one
 * secret shown; but names of Secrets, of files and of fields stay readable,
 * because without them nobody finds the fault.
 */
export const MASK = '***';

const SECRET_WORDS = new Set([
  'password',
  'passwords',
  'passwd',
  'pwd',
  'pass',
  'passphrase',
  'secret',
  'secrets',
  'token',
  'credential',
  'credentials',
  'authorization',
]);
const SECRET_PAIRS = new Set([
  'access key',
  'access id',
  'secret key',
  'secret id',
  'api key',
  'private key',
  'signing key',
  'encryption key',
]);
/** `secretName`, `tokenFile`, `passwordPolicy`: about a secret, not one. */
const HARMLESS_LAST_WORDS = new Set(
  'name names namespace ref refs reference file path dir policy type kind version count length seconds expiry expires url endpoint provider class'.split(
    ' ',
  ),
);

/** Whether a field, variable or header of this name holds a secret. */
export function isSecretKey(key: string): boolean {
  const words = key
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .replaceAll(/(access|secret|api|private)(key|id)\b/g, '$1 $2')
    .split(/[^a-z\d]+/)
    .filter((word) => word !== '');
  if (HARMLESS_LAST_WORDS.has(words.at(-1) ?? '')) return false;
  return words.some(
    (word, at) => SECRET_WORDS.has(word) || SECRET_PAIRS.has(`${word} ${words[at + 1] ?? ''}`),
  );
}

/** As it stands, as it stands within a JSON text, or cut off. */
const QUOTED = String.raw`"(?:[^"\\]|\\[\s\S])*(?:"|$)|'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)|\\"(?:(?!\\")[^"])*\\?"`;
const BARE = String.raw`[^\s,;&"'(){}\[\]]+`;
/** Bounded, so that a megabyte without a space costs no more than one with. */
const KEY = String.raw`[\w.-]{0,80}?(?:pass|pwd|secret|token|credential|authorization|access[_.-]?(?:key|id)|api[_.-]?key|private[_.-]?key|signing[_.-]?key|encryption[_.-]?key)[\w.-]{0,80}`;
/** `spec.rootPassword: Required value` tells of a fault, not of a value. */
const FAULT_WORDS =
  /^(?:required|forbidden|must|is|was|not|no|too|unsupported|duplicate|missing|expired|invalid|unexpected|failed|cannot|unknown)\b/i;

const KEY_VALUE = new RegExp(
  String.raw`(?<![\w.-])(${KEY})(\\?["'\]]{0,2}\s*(?::\s*Invalid value\s*:|=>|:=|[:=])\s*)((?:(?:bearer|basic)\s+)?(?:${QUOTED}|${BARE}))`,
  'gi',
);
const FLAG_VALUE = new RegExp(String.raw`(?<![\w.-])(--?${KEY})(\s+)(${QUOTED}|${BARE})`, 'gi');

type Rule = readonly [pattern: RegExp, replace: (...parts: string[]) => string];

const RULES: readonly Rule[] = [
  [
    /-----BEGIN ([A-Z ]{0,20})PRIVATE KEY-----[\s\S]*?(?:-----END \1PRIVATE KEY-----|$)/g,
    () => `[private key ${MASK}]`,
  ],
  // User and password of a URL, and of the Go form `user:password@tcp(host)`.
  [
    /([a-z][a-z\d+.-]{0,30}:\/\/[^\s/:@?#]{0,256}:)[^\s/@]{1,1024}@/gi,
    (_match, before) => `${before}${MASK}@`,
  ],
  [
    /(?<![\w.@#-])([\w.@#-]{1,128}:)[^\s@]{1,256}@(tcp|unix)\(/g,
    (_match, user, net) => `${user}${MASK}@${net}(`,
  ],
  [
    new RegExp(
      String.raw`(identified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?)(?:${QUOTED}|${BARE})`,
      'gi',
    ),
    (_match, before) => `${before}'${MASK}'`,
  ],
  [
    new RegExp(
      String.raw`(set\s+password(?:\s+for\s+\S+)?\s*=\s*(?:password\s*\(\s*)?)(?:${QUOTED}|${BARE})`,
      'gi',
    ),
    (_match, before) => `${before}'${MASK}'`,
  ],
  [KEY_VALUE, maskKeyValue],
  [
    FLAG_VALUE,
    (match, flag, space, value) =>
      isSecretKey(flag) && !value.startsWith('-') ? `${flag}${space}${masked(value)}` : match,
  ],
  // `mysql -p'…'`
  [/(\s-p)(?:'[^']*'|"[^"]*")/g, (_match, flag) => `${flag}'${MASK}'`],
  [/\b(bearer)\s+[\w.~+/=-]{8,}/gi, (_match, scheme) => `${scheme} ${MASK}`],
  // A JSON Web Token has no other reason to be somewhere.
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, () => MASK],
];

/** The text without its secrets. */
export function maskSecrets(text: string): string {
  return RULES.reduce((masking, [pattern, replace]) => masking.replaceAll(pattern, replace), text);
}

function maskKeyValue(match: string, key: string, separator: string, value: string): string {
  if (!isSecretKey(key) || FAULT_WORDS.test(value) || value === MASK) return match;
  const scheme = /^(?:bearer|basic)\s+/i.exec(value)?.[0] ?? '';
  return `${key}${separator}${scheme}${masked(value.slice(scheme.length))}`;
}

/** Quotes stay, so that JSON stays JSON. */
function masked(value: string): string {
  const quote = /^\\?["']/.exec(value)?.[0] ?? '';
  return `${quote}${MASK}${quote}`;
}

/**
 * A copy of a value, with the secrets in it masked: by the names of its
 * fields, in the data of Secret objects, in `{name, value}` pairs as a
 * container's environment has them, and in every text.
 */
export function maskValue(value: unknown): unknown {
  return maskWithin(value, false, new Set());
}

function maskWithin(value: unknown, secret: boolean, above: ReadonlySet<object>): unknown {
  switch (typeof value) {
    case 'string':
      return secret && value !== '' ? MASK : maskSecrets(value);
    case 'number':
    case 'bigint':
      return secret ? MASK : value;
    case 'object':
      if (value === null || value instanceof Date) return value;
      // A loop in what somebody logs must not end the process.
      if (above.has(value)) return '[circular]';
      if (value instanceof Error) return maskSecrets(`${value.name}: ${value.message}`);
      if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
      return maskObject(value, secret, new Set([...above, value]));
    case 'boolean':
    case 'undefined':
    case 'symbol':
    case 'function':
      return value;
  }
}

function maskObject(value: object, secret: boolean, above: ReadonlySet<object>): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => maskWithin(item, secret, above));
  const record = value as Record<string, unknown>;
  const isSecretObject = record['kind'] === 'Secret';
  const isSecretPair = typeof record['name'] === 'string' && isSecretKey(record['name']);
  return Object.fromEntries(
    Object.entries(record).map(([key, field]) => {
      const hidden =
        isSecretKey(key) ||
        (isSecretObject && (key === 'data' || key === 'stringData')) ||
        (isSecretPair && key === 'value');
      // What a secret field refers to by name is no secret: `password: {secretKeyRef: {name: db}}`.
      const inherited =
        secret && !HARMLESS_LAST_WORDS.has(key.toLowerCase()) && !/(?:Ref|Name|From)$/.test(key);
      return [key, maskWithin(field, hidden || inherited, above)];
    }),
  );
}
