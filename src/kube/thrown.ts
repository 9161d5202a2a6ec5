/** JavaScript lets anything be thrown; these make an Error and a text of it. */
export function errorOf(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new Error(typeof thrown === 'string' ? thrown : `thrown: ${JSON.stringify(thrown) ?? 'nothing'}`);
}

export function messageOf(thrown: unknown): string {
  return errorOf(thrown).message;
}
