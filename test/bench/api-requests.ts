/** How many calls the API server has had, by its own count: nobody else knows of all of them. */
import type { KubeClient } from '../../src/kube/client.ts';

export interface CallCount {
  readonly verb: string;
  readonly resource: string;
  readonly subresource: string;
  readonly count: number;
}

const LINE = /^apiserver_request_total\{([^}]*)\} (\S+)$/gm;
const LABEL = /(\w+)="([^"]*)"/g;

export async function callsSoFar(client: KubeClient): Promise<CallCount[]> {
  const text = await client.text('/metrics');
  return [...text.matchAll(LINE)].map(([, labels = '', count]) => {
    const label = Object.fromEntries([...labels.matchAll(LABEL)].map(([, key, value]) => [key, value]));
    const { verb = '', resource = '', subresource = '' } = label as Record<string, string>;
    return { verb, resource, subresource, count: Number(count) };
  });
}

export function countOf(calls: readonly CallCount[], which: Partial<Omit<CallCount, 'count'>>): number {
  const wanted = Object.entries(which);
  return calls
    .filter((call) => wanted.every(([key, value]) => call[key as keyof CallCount] === value))
    .reduce((sum, { count }) => sum + count, 0);
}
