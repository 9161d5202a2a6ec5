/**
 * Upgraded connections (exec, attach, port-forward): the handshake is passed
 * on, then bytes both ways. No faults inside; break or pause the connection.
 */
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { headerPairs, type Upstream } from './exchange.ts';

export function tunnelUpgrade(
  incoming: IncomingMessage,
  client: Duplex,
  head: Buffer,
  { target, agent }: Upstream,
  onStatus: (status: number) => void,
): void {
  // Not from the pool: the connection never returns to it. Only the trust is the same.
  const forwarded = httpsRequest(target, {
    agent: false,
    ca: agent.options.ca,
    method: incoming.method,
    path: incoming.url,
    headers: incoming.rawHeaders,
  });
  const onAnswer = (answer: IncomingMessage): void => {
    onStatus(answer.statusCode ?? 0);
    client.write(statusLineAndHeaders(answer));
  };
  forwarded.on('error', () => client.destroy());
  forwarded.once('upgrade', (answer, server, serverHead) => {
    onAnswer(answer);
    client.write(serverHead);
    server.write(head);
    couple(client, server);
  });
  // Refused: the answer ends with its connection, as its headers may not say how long it is.
  forwarded.once('response', (answer) => {
    onAnswer(answer);
    answer.pipe(client);
  });
  client.on('error', () => undefined);
  client.once('close', () => forwarded.destroy());
  forwarded.end();
}

function couple(client: Duplex, server: Duplex): void {
  server.on('error', () => client.destroy());
  server.once('close', () => client.destroy());
  client.once('close', () => server.destroy());
  client.pipe(server);
  server.pipe(client);
}

function statusLineAndHeaders(answer: IncomingMessage): string {
  const refused = answer.statusCode !== 101;
  const headers = headerPairs(answer.rawHeaders).filter(
    ([name]) => !refused || !['connection', 'transfer-encoding'].includes(name.toLowerCase()),
  );
  if (refused) headers.push(['Connection', 'close']);
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${lines.join('')}\r\n`;
}
