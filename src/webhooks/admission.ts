/**
 * One review, answered: defaults as a patch, or every fault of the object at
 * once. Nothing that a rule does can make it throw: a rule that fails or takes
 * too long refuses the object, or lets it in where the kind's failurePolicy is
 * Ignore, just as if the webhook had not been there.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  type AdmissionRequest,
  type AdmissionReview,
  answer,
  MalformedReviewError,
  parseReview,
  refusal,
} from './admission-review.ts';
import { overlayDefaults, patchFrom } from './defaults.ts';
import { silentLog, type WebhookLog } from './log.ts';
import type { AdmissionContext, Fault, Operation, WebhookKind } from './rules.ts';
import { describeIssue, faultsOf } from './schema-faults.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KindObject } from '../kube/schema/define-schema.ts';

export type AdmissionMode = 'mutate' | 'validate';

export interface AdmissionEnvironment {
  readonly client: KubeClient;
  /** Aborted when the answer must be given. */
  readonly signal: AbortSignal;
  readonly log?: WebhookLog;
  /** A rule threw. */
  readonly onRuleFailure?: () => void;
}

/** More than anyone reads at once. */
const MOST_FAULTS = 50;
const LONGEST_WARNING = 256;

/** Throws only a MalformedReviewError, and only if the review has no uid to answer to. */
export async function admit(
  review: unknown,
  kind: WebhookKind,
  mode: AdmissionMode,
  environment: AdmissionEnvironment,
): Promise<AdmissionReview> {
  let request: AdmissionRequest;
  try {
    request = parseReview(review);
    checkAddress(request, kind);
  } catch (error) {
    if (!(error instanceof MalformedReviewError) || error.uid === undefined) throw error;
    return refusal(error.uid, { code: 400, reason: 'BadRequest', message: error.message });
  }
  try {
    return await beforeAbort(decide(request, kind, mode, environment), environment.signal);
  } catch (error) {
    return unanswered(request, kind, error, environment);
  }
}

class TimeOverError extends Error {
  override readonly name = 'TimeOverError';
}

async function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(new TimeOverError('the time for the answer is over'));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, over]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** The rules gave no verdict. Their error may hold what nobody may see, so only the log gets it. */
function unanswered(
  { uid }: AdmissionRequest,
  { schema, rules }: WebhookKind,
  error: unknown,
  { log = silentLog, onRuleFailure }: AdmissionEnvironment,
): AdmissionReview {
  const late = error instanceof TimeOverError;
  if (!late) onRuleFailure?.();
  log.error('admission rules failed', { kind: schema.kind, uid, error });
  const what = late
    ? `the rules of ${schema.kind} took too long`
    : `the rules of ${schema.kind} failed; the operator's log tells why`;
  if (rules.failurePolicy === 'Ignore')
    return answer({ uid, allowed: true, warnings: [`${what}; the object was not checked`] });
  const message = `${what} (request ${uid})`;
  return late
    ? refusal(uid, { code: 504, reason: 'Timeout', message })
    : refusal(uid, { code: 500, reason: 'InternalError', message });
}

function checkAddress({ uid, kind, operation, object }: AdmissionRequest, { schema }: WebhookKind): void {
  if (kind.kind !== schema.kind || kind.group !== schema.group)
    throw new MalformedReviewError(`this webhook is of ${schema.kind}.${schema.group}`, uid);
  if ((operation === 'CREATE' || operation === 'UPDATE') && object == null)
    throw new MalformedReviewError(`a review of ${operation} needs the object`, uid);
}

async function decide(
  request: AdmissionRequest,
  kind: WebhookKind,
  mode: AdmissionMode,
  environment: AdmissionEnvironment,
): Promise<AdmissionReview> {
  const { operation, subResource } = request;
  const allowed = answer({ uid: request.uid, allowed: true });
  if (operation === 'CONNECT' || (subResource !== undefined && subResource !== '')) return allowed;
  const context = contextOf(request, operation, environment);
  if (operation === 'DELETE') return mode === 'validate' ? judgeDeletion(request, kind, context) : allowed;
  const object = request.object as unknown as KindObject;
  if (leavesSpecAlone(request)) {
    // Whatever the rules say: an object on its way out must lose its finalizers.
    const dying = object.metadata.deletionTimestamp !== undefined;
    // It had its defaults when it was made. New ones come with its next change, and are judged with that.
    if (dying || mode === 'mutate') return allowed;
  }
  switch (mode) {
    case 'mutate':
      return complete(request.uid, object, kind, context);
    case 'validate':
      return judge(request, object, kind, context);
  }
}

function contextOf(
  { oldObject, userInfo, dryRun }: AdmissionRequest,
  operation: Operation,
  { client, signal }: AdmissionEnvironment,
): AdmissionContext<KindObject> {
  return {
    operation,
    old: operation === 'CREATE' ? undefined : ((oldObject ?? undefined) as KindObject | undefined),
    user: { username: userInfo?.username ?? '', groups: userInfo?.groups ?? [] },
    dryRun: dryRun ?? false,
    signal,
    client,
  };
}

function leavesSpecAlone({ operation, object, oldObject }: AdmissionRequest): boolean {
  if (operation !== 'UPDATE' || object == null || oldObject == null) return false;
  return isDeepStrictEqual(object['spec'], oldObject['spec']);
}

/** Defaults. An object that cannot be right is left to the validation, which says why. */
async function complete(
  uid: string,
  object: KindObject,
  { schema, rules }: WebhookKind,
  context: AdmissionContext<KindObject>,
): Promise<AdmissionReview> {
  const checked = await check(schema.spec, object);
  let completed = checked.object;
  if (rules.defaults) {
    try {
      // The rule may write on its copy; the patch is what became different.
      const copy = structuredClone(completed);
      completed = (await rules.defaults(copy, context)) ?? copy;
    } catch (error) {
      if (checked.faults.length === 0) throw error;
      completed = object;
    }
  }
  const patch = patchFrom(object, completed);
  if (patch.length === 0) return answer({ uid, allowed: true });
  const encoded = Buffer.from(JSON.stringify(patch)).toString('base64');
  return answer({ uid, allowed: true, patchType: 'JSONPatch', patch: encoded });
}

async function judge(
  request: AdmissionRequest,
  object: KindObject,
  kind: WebhookKind,
  context: AdmissionContext<KindObject>,
): Promise<AdmissionReview> {
  const { schema, rules } = kind;
  const checked = await check(schema.spec, object);
  let faults = checked.faults;
  let warnings: readonly string[] = [];
  try {
    faults = [...faults, ...((await rules.validate?.(checked.object, context)) ?? [])];
    warnings = (await rules.warnings?.(checked.object, context)) ?? [];
  } catch (error) {
    // Rules count on what the schema promises; without it their failure is no news.
    if (checked.faults.length === 0) throw error;
  }
  // Rules get stricter with time, and the world changes: neither may keep labels and finalizers off an old object.
  if (leavesSpecAlone(request)) faults = faults.filter(({ path }) => !/^spec\b/.test(path));
  return verdict(request, kind, faults, warnings);
}

async function judgeDeletion(
  request: AdmissionRequest,
  kind: WebhookKind,
  context: AdmissionContext<KindObject>,
): Promise<AdmissionReview> {
  const { rules } = kind;
  if (!context.old) return answer({ uid: request.uid, allowed: true });
  return verdict(request, kind, (await rules.validateDelete?.(context.old, context)) ?? [], []);
}

/** Zod's faults, and the object with zod's defaults where there are none. */
async function check(
  spec: WebhookKind['schema']['spec'],
  object: KindObject,
): Promise<{ object: KindObject; faults: readonly Fault[] }> {
  const parsed = await spec.safeParseAsync(object.spec ?? {}, { error: describeIssue });
  if (!parsed.success) return { object, faults: faultsOf(parsed.error, 'spec') };
  const completed = overlayDefaults(object.spec, parsed.data) as KindObject['spec'];
  return { object: { ...object, spec: completed }, faults: [] };
}

function verdict(
  { uid, name, object, oldObject }: AdmissionRequest,
  { schema }: WebhookKind,
  found: readonly Fault[],
  warnings: readonly string[],
): AdmissionReview {
  const shown = warnings.map(warningText);
  const faults = distinct(found);
  if (faults.length === 0)
    return answer({ uid, allowed: true, ...(shown.length > 0 && { warnings: shown }) });
  const told = faults.slice(0, MOST_FAULTS);
  const more = faults.length > told.length ? [`and ${faults.length - told.length} more`] : [];
  const objectName = nameOf(object ?? oldObject) ?? name ?? '';
  const list = [...told.map(({ path, message }) => `${path} ${message}`.trim()), ...more].join('; ');
  const status = {
    code: 422,
    reason: 'Invalid',
    message: `${schema.kind} "${objectName}" is refused: ${list}`,
    details: {
      name: objectName,
      group: schema.group,
      kind: schema.kind,
      causes: told.map(({ path, message }) => ({ reason: 'FieldValueInvalid', message, field: path })),
    },
  };
  return refusal(uid, status, shown);
}

function distinct(faults: readonly Fault[]): readonly Fault[] {
  return [...new Map(faults.map((fault) => [`${fault.path}\n${fault.message}`, fault])).values()];
}

function nameOf(object: AdmissionRequest['object']): string | undefined {
  const { name, generateName } = (object?.metadata ?? {}) as { name?: unknown; generateName?: unknown };
  if (typeof name === 'string' && name !== '') return name;
  return typeof generateName === 'string' ? `${generateName}*` : undefined;
}

/** Warnings travel in a header: one line, and not a long one. */
function warningText(text: string): string {
  const line = text.replaceAll(/\p{Cc}+/gu, ' ').trim();
  return line.length <= LONGEST_WARNING ? line : `${line.slice(0, LONGEST_WARNING - 1)}…`;
}
