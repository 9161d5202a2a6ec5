/** A list page by page. A place that the server no longer knows (410) means the first page again. */
import type { ListMeta, ListOptions } from './client.ts';
import { Gone } from './errors.ts';

/** A server that forgets faster than we read is not hammered for ever. */
const MAX_RESTARTS = 3;
const PAGE_SIZE = 500;

/**
 * Page after page, as `fetch` gets them. `first` tells it that what it got
 * before does not count: the list begins, or begins anew.
 */
export async function* pagesOf<Page extends { readonly metadata: ListMeta }>(
  options: Omit<ListOptions, 'continue'>,
  fetch: (options: ListOptions, first: boolean) => Promise<Page>,
): AsyncGenerator<Page> {
  const { resourceVersion, resourceVersionMatch, ...others } = { limit: PAGE_SIZE, ...options };
  // A version is for the first page; a second start must not be older than the first.
  let start: ListOptions = { ...others, resourceVersion, resourceVersionMatch };
  let place: string | undefined;
  for (let restarts = 0; ;) {
    const first = place === undefined;
    let page: Page;
    try {
      page = await fetch(first ? start : { ...others, continue: place }, first);
    } catch (error) {
      if (!(error instanceof Gone) || first || restarts++ >= MAX_RESTARTS) throw error;
      start = others;
      place = undefined;
      continue;
    }
    yield page;
    // The server writes an empty text where there is nothing more.
    place = page.metadata.continue === '' ? undefined : page.metadata.continue;
    if (place === undefined) return;
  }
}
