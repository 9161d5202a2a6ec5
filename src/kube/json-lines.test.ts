import { describe, expect, it } from 'vitest';
import { lines } from './json-lines.ts';

async function collect(chunks: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for await (const line of lines(chunks.map((chunk) => Buffer.from(chunk, 'latin1')) as never))
    found.push(line);
  return found;
}

describe('lines', () => {
  it.each([
    [['a\nb\n'], ['a', 'b']],
    [
      ['a', 'b\nc', 'd\n'],
      ['ab', 'cd'],
    ],
    [['\n\na\n\n'], ['a']],
    [[], []],
    // ü in two chunks
    [['x\xc3', '\xbc\n'], ['xü']],
  ])('%j', async (chunks, expected) => expect(await collect(chunks)).toEqual(expected));

  it('a line without an end is an error, after the whole ones', async () => {
    await expect(collect(['a\nb'])).rejects.toThrow('in the middle of a line');
  });
});
