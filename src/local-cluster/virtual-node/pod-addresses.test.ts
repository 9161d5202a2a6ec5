import { describe, expect, it } from 'vitest';
import { loopbackNetwork } from './pod-addresses.ts';

describe('Pod addresses', () => {
  it('differ between Pods and stay with their Pod', () => {
    const network = loopbackNetwork(1, 0);
    expect(network.allocate('a')).toBe('127.17.1.1');
    expect(network.allocate('b')).toBe('127.17.1.2');
    expect(network.allocate('a')).toBe('127.17.1.1');
  });

  it('differ between clusters', () => {
    expect(loopbackNetwork(4, 0).allocate('a')).toBe('127.20.1.1');
  });

  it('begin somewhere in the network, since other planes of the machine use it too', () => {
    expect(loopbackNetwork(1, 253).allocate('a')).toBe('127.17.254.1');
    expect(loopbackNetwork(1).allocate('a')).toMatch(/^127\.17\.\d+\.1$/);
  });

  it('are kept where a Pod had one before', () => {
    const network = loopbackNetwork(2, 0);
    expect(network.allocate('a', '127.18.9.9')).toBe('127.18.9.9');
    expect(network.allocate('b', '127.18.9.9')).toBe('127.18.1.1');
    expect(network.allocate('c', '10.0.0.1')).toBe('127.18.1.2');
  });

  it('are not given to the next Pod at once, but when their turn comes', () => {
    const network = loopbackNetwork(1, 0);
    const first = network.allocate('a');
    network.release('a');
    expect(network.allocate('b')).not.toBe(first);
    for (let pod = 0; pod < 254 * 254 - 2; pod++) network.allocate(`pod-${pod}`);
    expect(network.allocate('c')).toBe(first);
    expect(() => network.allocate('d')).toThrow('in use');
  });
});
