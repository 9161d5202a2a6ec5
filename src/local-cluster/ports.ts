/** Free TCP ports on loopback. */
import { createServer, type Server } from 'node:net';

/**
 * Ports that were free a moment ago. They are held open together until all are
 * known, so that the kernel does not give the same one twice.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(0)));
  const ports = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('a TCP server has no port');
    return address.port;
  });
  await Promise.all(servers.map(close));
  return ports;
}

export async function arePortsFree(ports: readonly number[]): Promise<boolean> {
  const results = await Promise.allSettled(ports.map(listen));
  const servers = results.filter((result) => result.status === 'fulfilled').map((result) => result.value);
  await Promise.all(servers.map(close));
  return servers.length === ports.length;
}

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
