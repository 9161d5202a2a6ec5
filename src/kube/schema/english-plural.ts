/** The resource name that belongs to a kind, as an English reader expects it: `DRPolicy` → `drpolicies`. */
export function englishPlural(kind: string): string {
  const singular = kind.toLowerCase();
  if (/(?:s|x|z|ch|sh)$/.test(singular)) return `${singular}es`;
  if (/[^aeiou]y$/.test(singular)) return `${singular.slice(0, -1)}ies`;
  return `${singular}s`;
}
