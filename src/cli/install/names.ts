/** Names that the installation, the chart and the operator's own settings must agree on. */
import { version } from '../../version.ts';

export const OPERATOR = 'taskflow-operator';
export const DEFAULT_NAMESPACE = 'taskflow-system';
export const DEFAULT_IMAGE = `${OPERATOR}:${version}`;
export const DEFAULT_REPLICAS = 2;
export const FIELD_MANAGER = 'taskflow-install';

/** Where the operator finds its settings in the Pod. */
export const CONFIG_DIR = '/etc/taskflow-operator';
export const CONFIG_FILE = 'taskflow-operator.yaml';

/** Of its Service and of the Secret with its certificate. */
export function webhookName(name: string): string {
  return `${name}-webhook`;
}

export function labelsOf(name: string): Readonly<Record<string, string>> {
  return {
    'app.kubernetes.io/name': OPERATOR,
    'app.kubernetes.io/instance': name,
    'app.kubernetes.io/part-of': OPERATOR,
  };
}

/** Finds what an installation of this name has put into the cluster. */
export function selectorOf(name: string): string {
  return `app.kubernetes.io/part-of=${OPERATOR},app.kubernetes.io/instance=${name}`;
}
