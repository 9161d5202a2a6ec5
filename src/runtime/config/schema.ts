/** Every setting of the operator: its type, its default and what it is for. */
import { z } from 'zod';
import { parseAddress } from '../http-endpoints.ts';
import { durationMs } from './duration.ts';

/** Text such as `15s` or `1h30m`, read as milliseconds. */
const duration = (fallback: string) =>
  z
    .union([z.string(), z.number()])
    .default(fallback)
    .transform((value, context) => {
      const ms = durationMs(value);
      if (ms !== undefined) return ms;
      context.addIssue({ code: 'custom', message: 'must be a duration such as 500ms, 15s or 1h30m' });
      return z.NEVER;
    });

/** Seconds, as ob-operator writes its time constants. */
const seconds = (fallback: number) => z.coerce.number().int().positive().default(fallback);
const count = (fallback: number) => z.coerce.number().int().positive().default(fallback);
const flag = (fallback: boolean) => z.union([z.boolean(), z.stringbool()]).default(fallback);
/** A list in YAML, or comma-separated text in the environment and in flags. */
const names = () =>
  z
    .union([z.array(z.string()), z.string().transform((text) => text.split(',').map((part) => part.trim()))])
    .default([])
    .transform((list) => list.filter((name) => name !== ''));

const address = (fallback: string) =>
  z
    .string()
    .default(fallback)
    .superRefine((text, context) => {
      try {
        parseAddress(text);
      } catch (error) {
        context.addIssue({ code: 'custom', message: (error as Error).message });
      }
    });

const section = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape).prefault({} as never);

export const configSchema = z.strictObject({
  /** Which systems to run; all where empty. */
  systems: names(),
  /** Which namespaces to watch; all where empty. */
  namespaces: names(),
  leaderElection: section({
    enabled: flag(true),
    name: z.string().min(1).default('taskflow-operator'),
    /** Where the lease is; the operator's own namespace where empty. */
    namespace: z.string().default(''),
    leaseDuration: duration('15s'),
    renewDeadline: duration('10s'),
    retryPeriod: duration('2s'),
  }),
  webhooks: section({
    enabled: flag(true),
    address: address(':9443'),
    /** Base URL the API server calls; the Service where empty. */
    url: z.string().default(''),
    service: z.string().default('taskflow-operator-webhook'),
    /** `own`: made and renewed here. `files`: given, or mounted by cert-manager. */
    certificates: z.enum(['own', 'files']).default('own'),
    secret: z.string().default('taskflow-operator-webhook'),
    certFile: z.string().default(''),
    keyFile: z.string().default(''),
    caFile: z.string().default(''),
    certificateLifetime: duration('2160h'),
  }),
  metrics: section({ address: address(':8080') }),
  health: section({ address: address(':8081') }),
  /** Off unless given; loopback only. */
  debug: section({ address: address('0') }),
  log: section({
    verbosity: z.coerce.number().int().min(0).max(2).default(0),
    format: z.enum(['json', 'human']).default('json'),
  }),
  controller: section({
    maxConcurrentReconciles: count(4),
    reconcileTimeout: duration('60s'),
    cacheSyncTimeout: duration('2m'),
  }),
  shutdown: section({ grace: duration('25s') }),
  engine: section({
    annotationDomain: z.string().min(1).default('taskflow.dev'),
    plugins: names(),
    strictPlugins: flag(false),
    poolSize: count(500),
  }),
  /** Constants of task flows, under the names that ob-operator gave them. Seconds. */
  time: section({
    taskMaxRetryTimes: count(99),
    taskRetryBackoffThreshold: count(16),
    taskRetryMaxDelaySeconds: seconds(300),
    defaultStateWaitTimeout: seconds(1800),
    timeConsumingStateWaitTimeout: seconds(3600),
    waitForJobTimeoutSeconds: seconds(7200),
    serverDeleteTimeoutSeconds: seconds(604_800),
    commonCheckInterval: seconds(5),
    checkJobInterval: seconds(3),
    heartbeatInterval: seconds(5),
  }),
});

export type Config = z.output<typeof configSchema>;

/** `leaderElection.enabled`, …: every setting there is. */
export function knownKeys(schema: z.ZodType = configSchema, prefix = ''): string[] {
  const inner = schema instanceof z.ZodPrefault ? (schema.def.innerType as z.ZodType) : schema;
  if (!(inner instanceof z.ZodObject)) return [prefix];
  return Object.entries(inner.shape as Record<string, z.ZodType>).flatMap(([key, value]) =>
    knownKeys(value, prefix === '' ? key : `${prefix}.${key}`),
  );
}
