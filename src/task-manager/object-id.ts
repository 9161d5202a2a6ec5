/** Names an object among those of all kinds; neither part may contain a space. */
export function objectIdOf({ kind, key }: { readonly kind: string; readonly key: string }): string {
  return `${kind} ${key}`;
}
