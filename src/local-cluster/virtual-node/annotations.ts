/** What a Pod may ask of the virtual node by annotation; for tests and demonstrations. */
import type { Pod } from '../../kube/builtin-resources.ts';

export const DOMAIN = 'virtual-node.taskflow.dev';

export const FAIL = `${DOMAIN}/fail`;
export const COMPLETE_AFTER = `${DOMAIN}/complete-after`;
export const EXIT_CODE = `${DOMAIN}/exit-code`;

const FAILURES = ['ImagePullBackOff', 'ErrImagePull', 'CrashLoopBackOff', 'CreateContainerError'] as const;
export type AskedFailure = (typeof FAILURES)[number];

/** Unknown values ask for nothing: a typing error must not take a Pod down. */
export function askedFailure(pod: Pod): AskedFailure | undefined {
  return FAILURES.find((failure) => failure === pod.metadata?.annotations?.[FAIL]);
}

/** When containers that are only pretended to run are to end, and how; never where not asked for. */
export function askedCompletion(
  pod: Pod,
): { readonly afterMs: number; readonly exitCode: number } | undefined {
  const annotations = pod.metadata?.annotations ?? {};
  const afterMs = parseDuration(annotations[COMPLETE_AFTER] ?? '');
  if (afterMs === undefined) return undefined;
  const exitCode = Number(annotations[EXIT_CODE] ?? 0);
  return { afterMs, exitCode: Number.isInteger(exitCode) && exitCode >= 0 && exitCode < 256 ? exitCode : 1 };
}

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

/** Go's notation, as everywhere in Kubernetes: `500ms`, `1m30s`. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) return undefined;
  return [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)].reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS],
    0,
  );
}
