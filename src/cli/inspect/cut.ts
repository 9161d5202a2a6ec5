/** A text of at most so many characters; one that was longer ends in `…`. */
export function cut(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, Math.max(0, longest - 1)).trimEnd()}…`;
}
