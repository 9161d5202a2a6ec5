/** Where the webhooks of a kind are found. */
import type { AdmissionMode } from './admission.ts';
import type { KindSchema } from '../kube/schema/define-schema.ts';

/** `/validate/apps.example.com/v1/widgets` */
export function webhookRoute(mode: AdmissionMode, { group, version, plural }: KindSchema): string {
  return `/${mode}/${group}/${version}/${plural}`;
}
