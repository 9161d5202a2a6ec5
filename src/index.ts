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
export { type KindSchema, type ObjectOf, type SchemaOptions } from './kube/schema/define-schema.ts';
export {
  configMaps,
  jobs,
  namespaces,
  nodes,
  persistentVolumeClaims,
  pods,
  secrets,
  serviceAccounts,
} from './kube/builtin-resources.ts';
export { awaitDeletion, awaitObject, type AwaitOptions } from './kube/await-object.ts';
export { ownerReferenceTo } from './kube/owner-references.ts';
export { z } from 'zod';
export { defineSchema, type FlowSchemaOptions } from './taskflow/flow-schema.ts';
export {
  defineTasks,
  type TaskContext,
  type TaskDef,
  type TaskFn,
  type TaskHub,
  type TaskOptions,
  type TaskOutcome,
  type WaitOutcome,
} from './taskflow/task-definition.ts';
export { defineFlow } from './taskflow/define-flow.ts';
export {
  type FlowBuilder,
  type FlowDef,
  type GraphNode,
  type GraphScheduler,
  type NodeState,
  type NodeStore,
} from './taskflow/flow-definition.ts';
export { type Observation, type ObserverContext, type ObserverDef } from './taskflow/observations.ts';
export { type CacheReader } from './taskflow/cache-reader.ts';
export { type Deletion, type StateDef } from './taskflow/flow-kind.ts';
export { type FlowExtension } from './taskflow/flow-catalogue.ts';
export { type ManagerInit, type ResourceManager, type TaskFlow } from './taskflow/resource-manager.ts';
export {
  type EngineStatus,
  type FinishedFlow,
  type FinishedTask,
  type OperationContext,
} from './taskflow/operation-context.ts';
export { BaseResourceManager } from './resource-managers/base-resource-manager.ts';
export {
  defineKind,
  type DefinedKind,
  type KindOptions,
  type WatchDef,
} from './resource-managers/define-kind.ts';
export {
  CanceledError,
  HeartbeatTimeoutError,
  NotReady,
  PermanentError,
  TimeoutError,
} from './task-manager/errors.ts';
export { type PoolClass } from './task-manager/task-manager.ts';
export { type Engine } from './cli/operator/plugins.ts';
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
