import { describe, expect, it } from 'vitest';
import {
  buildEnvironment,
  commandLine,
  type EnvironmentSources,
  environmentReferences,
  expand,
} from './environment.ts';
import { AwaitsObject } from './object-references.ts';
import type { Container, StoredPod } from './pod-spec.ts';

const pod: StoredPod = {
  metadata: {
    name: 'web-0',
    namespace: 'shop',
    uid: 'u-1',
    resourceVersion: '1',
    labels: { app: 'web' },
    annotations: { 'example.com/note': 'hi' },
  },
  spec: {
    nodeName: 'virtual-node',
    serviceAccountName: 'runner',
    containers: [{ name: 'other', resources: { limits: { memory: '1Gi' } } }],
  },
};

const sources: EnvironmentSources = {
  pod,
  addresses: { podIP: '127.17.1.1', hostIP: '127.0.0.1' },
  node: { cpu: '4', memory: '8Gi', 'ephemeral-storage': '100Gi' },
  configMaps: new Map([['settings', { data: { COLOR: 'red', SIZE: 'xl', 'bad=key': 'x' } }]]),
  secrets: new Map([['login', { data: { password: Buffer.from('s3cret').toString('base64') } }]]),
};

function environment(container: Omit<Container, 'name'>): Record<string, string> {
  return buildEnvironment({ name: 'main', ...container }, { BASE: 'b' }, sources);
}

describe('$(NAME)', () => {
  it.each([
    ['$(A)-$(B)', '1-2'],
    ['$$(A)', '$(A)'],
    ['$$$(A)', '$1'],
    ['$(UNKNOWN)', '$(UNKNOWN)'],
    ['$A ${A} $', '$A ${A} $'],
    ['$(A', '$(A'],
    ['a$$b', 'a$b'],
  ])('in %s gives %s', (text, expected) => expect(expand(text, { A: '1', B: '2' })).toBe(expected));
});

describe('the environment of a container', () => {
  it('comes from values, which may build on earlier ones', () => {
    const env = [
      { name: 'HOST', value: 'db' },
      { name: 'URL', value: 'http://$(HOST):$(PORT)/$(BASE)' },
      { name: 'PORT', value: '80' },
    ];
    expect(environment({ env })).toEqual({ BASE: 'b', HOST: 'db', URL: 'http://db:$(PORT)/b', PORT: '80' });
  });

  it('comes from ConfigMaps and Secrets, whole or by key', () => {
    expect(
      environment({
        envFrom: [{ configMapRef: { name: 'settings' }, prefix: 'CM_' }, { secretRef: { name: 'login' } }],
        env: [
          { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'login', key: 'password' } } },
          { name: 'CM_SIZE', valueFrom: { configMapKeyRef: { name: 'settings', key: 'COLOR' } } },
        ],
      }),
    ).toEqual({ BASE: 'b', CM_COLOR: 'red', CM_SIZE: 'red', password: 's3cret', PASSWORD: 's3cret' });
  });

  it('leaves out what is optional and absent', () => {
    expect(
      environment({
        envFrom: [{ configMapRef: { name: 'nowhere', optional: true } }],
        env: [
          { name: 'A', valueFrom: { secretKeyRef: { name: 'nowhere', key: 'k', optional: true } } },
          { name: 'B', valueFrom: { secretKeyRef: { name: 'login', key: 'k', optional: true } } },
        ],
      }),
    ).toEqual({ BASE: 'b' });
  });

  it('names what is missing, and where to wait for it', () => {
    const missing = (container: Omit<Container, 'name'>): AwaitsObject => {
      try {
        environment(container);
      } catch (error) {
        if (error instanceof AwaitsObject) return error;
        throw error;
      }
      throw new Error('nothing was missing');
    };
    expect(missing({ envFrom: [{ configMapRef: { name: 'nowhere' } }] }).message).toBe(
      'configmap "nowhere" not found',
    );
    const key = missing({
      env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'login', key: 'user' } } }],
    });
    expect(key.message).toBe("couldn't find key user in Secret shop/login");
    expect(key.ref).toEqual({ name: 'login', namespace: 'shop' });
    expect(key.type.plural).toBe('secrets');
  });

  it.each([
    ['metadata.name', 'web-0'],
    ['metadata.namespace', 'shop'],
    ['metadata.uid', 'u-1'],
    ["metadata.labels['app']", 'web'],
    ["metadata.annotations['example.com/note']", 'hi'],
    ["metadata.labels['none']", ''],
    ['spec.nodeName', 'virtual-node'],
    ['spec.serviceAccountName', 'runner'],
    ['status.podIP', '127.17.1.1'],
    ['status.hostIP', '127.0.0.1'],
  ])('tells %s', (fieldPath, expected) => {
    expect(environment({ env: [{ name: 'F', valueFrom: { fieldRef: { fieldPath } } }] })['F']).toBe(expected);
  });

  it('tells resources in the wanted unit, rounded up', () => {
    const of = (resource: string, divisor?: string, containerName?: string): string | undefined =>
      environment({
        resources: { limits: { cpu: '1500m' }, requests: { memory: '64Mi' } },
        env: [
          {
            name: 'R',
            valueFrom: {
              resourceFieldRef: {
                resource,
                ...(divisor !== undefined && { divisor }),
                ...(containerName !== undefined && { containerName }),
              },
            },
          },
        ],
      })['R'];
    expect(of('limits.cpu')).toBe('2');
    expect(of('limits.cpu', '1m')).toBe('1500');
    expect(of('requests.memory', '1Mi')).toBe('64');
    expect(of('requests.cpu')).toBe('0');
    expect(of('limits.memory', '1Gi')).toBe('8');
    expect(of('limits.memory', '1Mi', 'other')).toBe('1024');
  });

  it('is what the command line is expanded with', () => {
    expect(commandLine({ name: 'c', command: ['run', '$(A)'], args: ['$(B)', '$$(A)'] }, { A: '1' })).toEqual(
      ['run', '1', '$(B)', '$(A)'],
    );
  });

  it('lists what it refers to', () => {
    const found = environmentReferences({
      name: 'c',
      envFrom: [{ secretRef: { name: 's1' } }, { configMapRef: { name: 'c1' } }],
      env: [
        { name: 'A', valueFrom: { secretKeyRef: { name: 's2', key: 'k' } } },
        { name: 'B', valueFrom: { configMapKeyRef: { name: 'c1', key: 'k' } } },
      ],
    });
    expect([...found.configMaps]).toEqual(['c1']);
    expect([...found.secrets]).toEqual(['s1', 's2']);
  });
});
