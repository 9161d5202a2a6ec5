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
export { defineResource, type KubeObject, type ResourceType, type Stored } from './kube/resource-type.ts';
