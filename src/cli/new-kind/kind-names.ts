/** A kind's name in all the forms that its files need. */
import { UserError } from '../user-error.ts';

export interface KindNames {
  /** `BackupPolicy` */
  readonly kind: string;
  /** `backupPolicy` */
  readonly variable: string;
  /** `backup-policy` */
  readonly file: string;
  /** `backup policy` */
  readonly words: string;
  readonly group: string;
}

const USAGE_ERROR = 2;

export function namesOf(kind: string, group: string): KindNames {
  if (!/^[A-Z][A-Za-z0-9]*$/.test(kind))
    throw new UserError(`"${kind}" is no name for a kind: it must be of the form BackupPolicy`, USAGE_ERROR);
  if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/.test(group))
    throw new UserError(`"${group}" is no API group: it must be of the form apps.example.com`, USAGE_ERROR);
  const words = kind
    .split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/)
    .map((word) => word.toLowerCase());
  return {
    kind,
    variable: words[0] + words.slice(1).map(capitalised).join(''),
    file: words.join('-'),
    words: words.join(' '),
    group,
  };
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
