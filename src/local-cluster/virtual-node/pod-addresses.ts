/**
 * One loopback address per live Pod, so that servers of different Pods can
 * listen on the same port. Clusters on one machine differ in the second byte.
 */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

export const HOST_ADDRESS = '127.0.0.1';
const PER_BLOCK = 254;
const PER_NETWORK = PER_BLOCK * PER_BLOCK;

export interface PodAddresses {
  /** The address of that Pod; the preferred one if it is free. Asking twice gives the same. */
  allocate(uid: string, preferred?: string): string;
  release(uid: string): void;
}

/** Control planes on one machine share the networks; beginning at random blocks, they rarely meet. */
export function loopbackNetwork(index: number, firstBlock = randomInt(PER_BLOCK)): PodAddresses {
  const byPod = new Map<string, string>();
  const taken = new Set<string>();
  let next = firstBlock * PER_BLOCK;
  // Addresses are handed out in turn: a client of a Pod just gone does not reach its successor.
  const free = (): string => {
    for (let tried = 0; tried < PER_NETWORK; tried++) {
      const address = addressAt(index, next++ % PER_NETWORK);
      if (!taken.has(address)) return address;
    }
    throw new Error(`all ${PER_NETWORK} Pod addresses of network ${index} are in use`);
  };
  return {
    allocate(uid, preferred) {
      const existing = byPod.get(uid);
      if (existing !== undefined) return existing;
      const usable = preferred !== undefined && isIn(index, preferred) && !taken.has(preferred);
      const address = usable ? preferred : free();
      byPod.set(uid, address);
      taken.add(address);
      return address;
    },
    release(uid) {
      taken.delete(byPod.get(uid) ?? '');
      byPod.delete(uid);
    },
  };
}

/** Where the machine has one loopback address only, all Pods share it. */
export const singleAddress: PodAddresses = { allocate: () => HOST_ADDRESS, release: () => {} };

/** macOS has 127.0.0.1 alone unless aliases are added. */
export function hasLoopbackNetwork(index: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once('error', () => resolve(false));
  server.listen({ host: addressAt(index, 0), port: 0 }, () => server.close(() => resolve(true)));
  return promise;
}

function addressAt(index: number, position: number): string {
  return `127.${16 + index}.${1 + Math.floor(position / PER_BLOCK)}.${1 + (position % PER_BLOCK)}`;
}

function isIn(index: number, address: string): boolean {
  return address.startsWith(`127.${16 + index}.`);
}
