/**
 * The API server matches patterns with Go's RE2, which has no lookaround and no
 * backreferences, and spells flags and code points differently.
 */
const LOOKAROUND = /\(\?<?[=!]/;
const BACKREFERENCE = /\\(?:[1-9]|k<)/;

/** The same expression for RE2; undefined if there is none. */
export function goPattern(expression: RegExp): string | undefined {
  // Escaped backslashes and parentheses are not syntax: they are blanked before looking for syntax.
  const syntax = expression.source.replaceAll(/\\[\\()[\]]/g, '__');
  if (LOOKAROUND.test(syntax) || BACKREFERENCE.test(syntax) || syntax.includes('[^]')) return undefined;
  const source = expression.source
    .replaceAll(/\\u\{([0-9a-fA-F]+)\}/g, String.raw`\x{$1}`)
    .replaceAll(/\\u([0-9a-fA-F]{4})/g, String.raw`\x{$1}`)
    .replaceAll(String.raw`\/`, '/')
    .replaceAll('(?<', '(?P<');
  const flags = expression.flags.replaceAll(/[^ims]/g, '');
  return flags === '' ? source : `(?${flags})${source}`;
}
