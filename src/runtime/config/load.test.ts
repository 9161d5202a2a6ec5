import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts';
import { durationMs } from './duration.ts';
import { loadConfig } from './load.ts';
import { knownKeys } from './schema.ts';

const none = { env: {}, defaultFiles: [] };

describe('configuration', () => {
  it('has a default for everything', () => {
    const config = loadConfig(none);
    expect(config.leaderElection).toMatchObject({
      enabled: true,
      leaseDuration: 15_000,
      renewDeadline: 10_000,
    });
    expect(config.time).toMatchObject({ taskMaxRetryTimes: 99, serverDeleteTimeoutSeconds: 604_800 });
  });

  it('lets a file override defaults, the environment the file, and flags the environment', async () => {
    await using dir = await temporaryDirectory();
    const file = join(dir.path, 'c.yaml');
    await writeFile(
      file,
      'log: {verbosity: 1, format: human}\nnamespaces: [a, b]\ncontroller: {maxConcurrentReconciles: 7}\n',
    );
    const config = loadConfig({
      file,
      env: { TASKFLOW_LOG_VERBOSITY: '2', TASKFLOW_NAMESPACES: 'c, d', HOME: '/somewhere' },
      flags: { namespaces: 'e', 'log.format': undefined },
    });
    expect(config.log).toEqual({ verbosity: 2, format: 'human' });
    expect(config.namespaces).toEqual(['e']);
    expect(config.controller.maxConcurrentReconciles).toBe(7);
  });

  it('takes the names of ob-operator for its own time constants, and only for them', () => {
    const env = { OB_OPERATOR_TIME_TASKMAXRETRYTIMES: '5', OB_OPERATOR_LOG_VERBOSITY: '2' };
    const config = loadConfig({ ...none, env });
    expect(config.time.taskMaxRetryTimes).toBe(5);
    expect(config.log.verbosity).toBe(0);
    expect(
      loadConfig({ ...none, env: { ...env, TASKFLOW_TIME_TASKMAXRETRYTIMES: '6' } }).time.taskMaxRetryTimes,
    ).toBe(6);
  });

  it.each([
    [{ flags: { 'log.verbosty': 1 } }, 'no such setting; did you mean log.verbosity?'],
    [
      { env: { TASKFLOW_LOG_VERBOSTY: '1' } },
      'TASKFLOW_LOG_VERBOSTY: no such setting; did you mean TASKFLOW_LOG_VERBOSITY?',
    ],
    [{ flags: { 'leaderElection.renewDeadline': 'soon' } }, 'must be a duration such as'],
    [{ flags: { 'metrics.address': 'here' } }, 'is no address'],
    [{ flags: { 'log.verbosity': 7 } }, 'log.verbosity'],
    [{ file: '/no/such/file.yaml' }, '/no/such/file.yaml'],
  ])('refuses %j', (sources, message) => {
    expect(() => loadConfig({ ...none, ...sources })).toThrow(message);
  });

  it('names the file and the key of an unknown setting in a file', async () => {
    await using dir = await temporaryDirectory();
    const file = join(dir.path, 'c.yaml');
    await writeFile(file, 'leaderElection: {enabeld: false}\nwebhook: {}\nfoo: 1\n');
    expect(() => loadConfig({ ...none, file })).toThrow(
      /c\.yaml: leaderElection\.enabeld: no such setting; did you mean leaderElection\.enabled\?[^]*foo: no such setting$/,
    );
  });

  it('passes over variables with our prefix that are no settings', () => {
    expect(() =>
      loadConfig({ ...none, env: { TASKFLOW_ASSETS: '/x', TASKFLOW_MOUNT_DATA: '/y' } }),
    ).not.toThrow();
  });

  it('knows every setting by its path', () => {
    expect(knownKeys()).toContain('webhooks.certificateLifetime');
    expect(knownKeys().every((key) => /^[a-zA-Z.]+$/.test(key))).toBe(true);
  });
});

describe('durations', () => {
  it.each([
    ['15s', 15_000],
    ['1h30m', 5_400_000],
    ['1.5s', 1_500],
    ['250ms', 250],
    ['0', 0],
    [40, 40],
    ['15', undefined],
    ['s', undefined],
    ['1s ', undefined],
    ['-1s', undefined],
    ['', undefined],
  ])('%j is %j ms', (text, ms) => {
    expect(durationMs(text)).toBe(ms);
  });
});
