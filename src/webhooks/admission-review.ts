/** admission.k8s.io/v1 as it travels: what is asked, and what is answered. */
import * as z from 'zod';
import type { StatusCause } from '../kube/errors.ts';

const object = z.looseObject({ metadata: z.looseObject({}) });

const requestSchema = z.looseObject({
  uid: z.string().min(1),
  kind: z.looseObject({ group: z.string(), version: z.string(), kind: z.string() }),
  operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
  subResource: z.string().optional(),
  name: z.string().optional(),
  namespace: z.string().optional(),
  userInfo: z
    .looseObject({ username: z.string().optional(), groups: z.array(z.string()).nullish() })
    .optional(),
  object: object.nullish(),
  oldObject: object.nullish(),
  dryRun: z.boolean().nullish(),
});

const reviewSchema = z.looseObject({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: requestSchema,
});

export type AdmissionRequest = z.output<typeof requestSchema>;

export interface AdmissionStatus {
  readonly code: number;
  readonly reason?: string;
  readonly message: string;
  readonly details?: {
    readonly name: string;
    readonly group: string;
    readonly kind: string;
    readonly causes: readonly StatusCause[];
  };
}

export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly status?: AdmissionStatus & { readonly status: 'Failure' };
  readonly warnings?: readonly string[];
  readonly patchType?: 'JSONPatch';
  /** Base64 of the JSON. */
  readonly patch?: string;
}

export interface AdmissionReview {
  readonly apiVersion: 'admission.k8s.io/v1';
  readonly kind: 'AdmissionReview';
  readonly response: AdmissionResponse;
}

/** What was sent is no review of ours; `uid` if at least the request can be named. */
export class MalformedReviewError extends Error {
  readonly code = 'MalformedReview';
  readonly uid: string | undefined;

  constructor(message: string, uid: string | undefined) {
    super(message);
    this.name = 'MalformedReviewError';
    this.uid = uid;
  }
}

export function parseReview(review: unknown): AdmissionRequest {
  const parsed = reviewSchema.safeParse(review);
  if (parsed.success) return parsed.data.request;
  const [issue] = parsed.error.issues;
  const at = issue === undefined || issue.path.length === 0 ? 'the body' : issue.path.join('.');
  throw new MalformedReviewError(
    `not an AdmissionReview of admission.k8s.io/v1: ${at} is missing or of the wrong form`,
    uidOf(review),
  );
}

export function answer(response: AdmissionResponse): AdmissionReview {
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response };
}

export function refusal(
  uid: string,
  status: AdmissionStatus,
  warnings: readonly string[] = [],
): AdmissionReview {
  return answer({
    uid,
    allowed: false,
    status: { status: 'Failure', ...status },
    ...(warnings.length > 0 && { warnings }),
  });
}

function uidOf(review: unknown): string | undefined {
  const named = z
    .looseObject({ request: z.looseObject({ uid: z.string().min(1).max(200) }) })
    .safeParse(review);
  return named.success ? named.data.request.uid : undefined;
}
