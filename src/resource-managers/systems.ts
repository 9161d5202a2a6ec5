/** The systems that come with the operator. Adding one is adding a line. */
import type { System } from './kind.ts';

export const SYSTEMS: readonly System[] = [];
