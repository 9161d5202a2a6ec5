/** Where this layer tells what happened; the operator's logger fits, and masks secrets. */
export interface WebhookLog {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

export const silentLog: WebhookLog = { info() {}, warn() {}, error() {} };
