/** The clock that plugin authors get as well. */
export { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts';
