import { describe, expect, it } from 'vitest';
import { fitting, LiveView } from './live-view.ts';

describe('a live view', () => {
  it('draws over what it drew before and gives the terminal back', async () => {
    let lines = ['one', 'two'];
    const written: string[] = [];
    const { promise: drawn, resolve } = Promise.withResolvers<void>();
    const view = new LiveView({ write: (text) => written.push(text) }, () => {
      resolve();
      return lines;
    });
    view.redraw();
    view.redraw();
    await drawn;
    lines = ['three'];
    view[Symbol.dispose]();
    const text = written.join('').replaceAll('\u001B[', '^');
    expect(text).toBe('^?25l^?7lone^K\ntwo^K\n^J\r^2Athree^K\n^J^?7h^?25h');
  });

  it('shows what fits', () => {
    expect(fitting(['a', 'b', 'c'], 3)).toEqual(['a', 'b', 'c']);
    expect(fitting(['a', 'b', 'c', 'd'], 3)).toEqual(['a', 'b', '… and 2 more']);
  });
});
