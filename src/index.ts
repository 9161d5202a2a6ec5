/** What `import … from 'taskflow-operator'` offers. */
export { version } from './version.ts';
export { KubeClient, type WatchEvent } from './kube/client.ts';
export { type ConnectionOptions, openConnection } from './kube/connection.ts';
export {
  AlreadyExists,
  ApiError,
  Conflict,
  ConnectionError,
  Forbidden,
  Gone,
  Invalid,
  NotFound,
  TooManyRequests,
  Unauthorized,
} from './kube/errors.ts';
export {
  conditions,
  cel,
  duration,
  immutable,
  intOrString,
  labelSelector,
  listMap,
  listSet,
  preserveUnknownFields,
  quantity,
  timestamp,
} from './kube/schema/kubernetes-types.ts';
export {
  defineSchema,
  type KindSchema,
  type ObjectOf,
  type SchemaOptions,
} from './kube/schema/define-schema.ts';
export { type RbacRule } from './kube/schema/rbac.ts';
export {
  type Control,
  type ControlContext,
  type OperatorKind,
  type System,
} from './resource-managers/kind.ts';
export {
  type Reconcile,
  type ReconcileContext,
  type ReconcileResult,
  TerminalError,
} from './runtime/controller.ts';
export { forKind, owns, watches } from './runtime/sources.ts';
export { type AdmissionContext, type Fault, type WebhookRules } from './webhooks/rules.ts';
export { defineResource, type KubeObject, type ResourceType, type Stored } from './kube/resource-type.ts';
