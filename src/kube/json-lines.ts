/** Splits a stream of bytes at line ends; what the last line lacks its end is an error. */
const NEWLINE = 10;

export async function* lines(
  body: AsyncIterable<Uint8Array>,
  onActivity?: () => void,
): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  for await (const chunk of body) {
    onActivity?.();
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
    let from = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, from)) {
      const head = bytes.subarray(from, end);
      const line = parts.length === 0 ? head : Buffer.concat([...parts, head]);
      parts = [];
      from = end + 1;
      if (line.length > 0) yield line.toString('utf8');
    }
    if (from < bytes.length) parts.push(bytes.subarray(from));
  }
  if (parts.length > 0) throw new Error('the stream ended in the middle of a line');
}
