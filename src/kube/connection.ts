/**
 * One API server and who we are to it. Watches get an agent of their own:
 * they hold a socket each for minutes, and must not starve the short calls.
 */
import { Agent } from 'undici';

export interface ConnectionOptions {
  /** `https://host:port` */
  readonly server: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string;
  readonly clientCertificate?: { readonly certPem: string; readonly keyPem: string };
  readonly token?: string;
}

export interface Connection extends AsyncDisposable {
  readonly server: string;
  readonly calls: Agent;
  readonly watches: Agent;
  headers(): Record<string, string>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 15_000;

export function openConnection(options: ConnectionOptions): Connection {
  const connect = {
    ca: options.ca,
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    ...(options.clientCertificate && {
      cert: options.clientCertificate.certPem,
      key: options.clientCertificate.keyPem,
    }),
  };
  // HTTP/1.1: one HTTP/2 session carries 100 streams, then every further call waits.
  const calls = new Agent({ connect, allowH2: false });
  const watches = new Agent({ connect, allowH2: false, bodyTimeout: 0, pipelining: 0 });
  const close = async (): Promise<void> => {
    await Promise.all([calls.destroy(), watches.destroy()]);
  };
  return {
    server: options.server,
    calls,
    watches,
    headers: () => (options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
    close,
    [Symbol.asyncDispose]: close,
  };
}
