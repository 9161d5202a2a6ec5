import { describe, expect, it } from 'vitest';
import { namesOf } from './kind-names.ts';

describe('namesOf', () => {
  it.each([
    ['Rocket', { variable: 'rocket', file: 'rocket', words: 'rocket' }],
    ['BackupPolicy', { variable: 'backupPolicy', file: 'backup-policy', words: 'backup policy' }],
    ['OBCluster', { variable: 'obCluster', file: 'ob-cluster', words: 'ob cluster' }],
    ['S3Bucket', { variable: 's3Bucket', file: 's3-bucket', words: 's3 bucket' }],
  ])('%s', (kind, names) => {
    expect(namesOf(kind, 'example.com')).toEqual({ kind, group: 'example.com', ...names });
  });

  it.each([
    ['rocket', 'example.com'],
    ['My Rocket', 'example.com'],
    ['Rocket', 'example'],
    ['Rocket', 'Example.com'],
  ])('refuses %s of %s', (kind, group) => {
    expect(() => namesOf(kind, group)).toThrow(/it must be of the form/);
  });
});
