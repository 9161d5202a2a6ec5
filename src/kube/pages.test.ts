import { describe, expect, it } from 'vitest';
import type { ListOptions } from './client.ts';
import { apiErrorFrom, type ApiError } from './errors.ts';
import { pagesOf } from './pages.ts';

const gone: ApiError = apiErrorFrom({ verb: 'list', resource: 'pods' }, 410, { reason: 'Expired' });

/** Answers in turn: the place of the next page, or an error. */
async function walk(
  answers: readonly (string | Error)[],
): Promise<{ asked: ListOptions[]; firsts: boolean[]; pages: number }> {
  const asked: ListOptions[] = [];
  const firsts: boolean[] = [];
  let pages = 0;
  const fetch = (options: ListOptions, first: boolean) => {
    const answer = answers[asked.length] ?? '';
    asked.push(options);
    firsts.push(first);
    if (answer instanceof Error) return Promise.reject(answer);
    return Promise.resolve({ metadata: { resourceVersion: '7', continue: answer } });
  };
  for await (const _ of pagesOf({ namespace: 'ns', resourceVersion: '0' }, fetch)) pages++;
  return { asked, firsts, pages };
}

describe('pagesOf', () => {
  it('asks for 500 at a time, the version only for the first', async () => {
    const { asked, pages } = await walk(['p2', 'p3', '']);
    expect(pages).toBe(3);
    expect(asked).toEqual([
      { namespace: 'ns', limit: 500, resourceVersion: '0', resourceVersionMatch: undefined },
      { namespace: 'ns', limit: 500, continue: 'p2' },
      { namespace: 'ns', limit: 500, continue: 'p3' },
    ]);
  });

  it('begins anew where the server forgot the place, and then not from its cache', async () => {
    const { asked, firsts, pages } = await walk(['p2', gone, 'p2', '']);
    expect(pages).toBe(3);
    expect(firsts).toEqual([true, false, true, false]);
    expect(asked[2]).toEqual({ namespace: 'ns', limit: 500 });
  });

  it('gives up when that happens again and again, and at once for other errors', async () => {
    await expect(walk(['p2', gone, 'p2', gone, 'p2', gone, 'p2', gone])).rejects.toBe(gone);
    await expect(walk([gone])).rejects.toBe(gone);
    const broken = new Error('broken');
    await expect(walk(['p2', broken])).rejects.toBe(broken);
  });
});
