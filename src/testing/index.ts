/** What `import … from 'taskflow-operator/testing'` offers to who writes kinds. */
export { type ManualClock, manualClock } from './manual-clock.ts';
export { type RunTwice, runTaskTwice, type TaskRunOptions } from './run-task-twice.ts';
export {
  type LogLine,
  type OperatorOptions,
  type RunningOperator,
  startOperator,
} from './running-operator.ts';
export { startTestPlane } from './test-plane.ts';
export { untilState } from './until-state.ts';
