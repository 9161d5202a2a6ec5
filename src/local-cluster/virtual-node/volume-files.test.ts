import { describe, expect, it } from 'vitest';
import { AwaitsObject } from './object-references.ts';
import type { StoredPod } from './pod-spec.ts';
import { configMapFiles, downwardFiles, secretFiles, type VolumeFile } from './volume-files.ts';

const pod: StoredPod = {
  metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1', labels: { b: 'say "hi"', a: '1' } },
  spec: { containers: [{ name: 'main', resources: { limits: { cpu: '2' } } }] },
};
const shown = (files: VolumeFile[]): string[] =>
  files.map(({ path, content, mode }) => `${path} ${mode.toString(8)} ${content.toString()}`);
const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('files of a volume', () => {
  it('are the keys of a ConfigMap', () => {
    const object = { data: { a: '1' }, binaryData: { b: base64('2') } };
    expect(shown(configMapFiles(pod, 'cm', object, {}))).toEqual(['a 644 1', 'b 644 2']);
    const items = [{ key: 'b', path: 'dir/c', mode: 0o400 }];
    expect(shown(configMapFiles(pod, 'cm', object, { items }))).toEqual(['dir/c 400 2']);
  });

  it('are readable by the owner alone where they are secret', () => {
    const object = { data: { a: base64('x') } };
    expect(shown(secretFiles(pod, 's', object, {}))).toEqual(['a 600 x']);
    expect(shown(secretFiles(pod, 's', object, { defaultMode: 0o444 }))).toEqual(['a 400 x']);
  });

  it('may be absent where they are optional, and are waited for otherwise', () => {
    expect(configMapFiles(pod, 'cm', undefined, { optional: true })).toEqual([]);
    expect(() => configMapFiles(pod, 'cm', undefined, {})).toThrow(AwaitsObject);
    const items = [{ key: 'k', path: 'p' }];
    expect(secretFiles(pod, 's', { data: {} }, { items, optional: true })).toEqual([]);
    expect(() => secretFiles(pod, 's', { data: {} }, { items })).toThrow(
      'secret "s" references non-existent key: k',
    );
  });

  it('tell of the Pod itself', () => {
    const items = [
      { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
      {
        path: 'cpu',
        mode: 0o600,
        resourceFieldRef: { containerName: 'main', resource: 'limits.cpu', divisor: '1m' },
      },
    ];
    const facts = {
      addresses: { podIP: '127.17.1.1', hostIP: '127.0.0.1' },
      node: { cpu: '4', memory: '1Gi', 'ephemeral-storage': '1Gi' },
    };
    expect(shown(downwardFiles(pod, items, facts))).toEqual([
      'labels 644 a="1"\nb="say \\"hi\\""',
      'cpu 600 2000',
    ]);
  });
});
