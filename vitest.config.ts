import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/**
 * One project per tier. Files of the tiers on the control plane share the one
 * that test/support/shared-control-plane.ts starts, each in namespaces of its own.
 */
const source = (file: string): string => join(import.meta.dirname, 'src', file);

export default defineConfig({
  // Examples import the package by its name.
  resolve: {
    alias: [
      { find: /^taskflow-operator$/, replacement: source('index.ts') },
      { find: /^taskflow-operator\/(testing|local-cluster)$/, replacement: source('$1/index.ts') },
    ],
  },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/unit/**/*.test.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/support/shared-control-plane.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          // Each starts a control plane: side by side they would only measure each other.
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'chaos',
          include: ['test/chaos/**/*.test.ts'],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
