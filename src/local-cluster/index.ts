/** What `import … from 'taskflow-operator/local-cluster'` offers: a real control plane for tests and trials. */
export { type Cluster } from './cluster.ts';
export {
  type ControlPlane,
  type ControlPlaneOptions,
  type PlaneEvent,
  startControlPlane,
} from './control-plane.ts';
export { AlreadyRunningError } from './claim.ts';
export { ChildDiedError } from './child-watch.ts';
export { BinariesNotFoundError, findBinaries, type KubeBinaries } from './binaries/find-binaries.ts';
