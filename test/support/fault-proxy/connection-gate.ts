/**
 * The TCP side of the fault proxy: accepts clients, and moves their bytes to
 * and from the HTTPS server inside. A layer of its own because only here a
 * connection can really go silent (no byte is read or written, the handshake
 * of a new one included) or break with a reset; the HTTP server would answer,
 * acknowledge or close politely behind our back.
 *
 * While paused nothing reaches the client, not even the end of its
 * connection: what would end it is remembered until the gate opens.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

interface Link {
  readonly client: Socket;
  inner?: Socket;
  /** Set while paused: the reset that the client will see when the gate opens. */
  doomed?: boolean;
}

export class ConnectionGate {
  readonly #server: Server;
  readonly #innerPort: number;
  readonly #links = new Set<Link>();
  /** The HTTPS server knows a connection by the port from which it comes. */
  readonly #byInnerPort = new Map<number, Link>();
  #paused = false;

  private constructor(innerPort: number) {
    this.#innerPort = innerPort;
    this.#server = createServer({ pauseOnConnect: true, noDelay: true }, (client) => this.#accept(client));
  }

  static async open(innerPort: number): Promise<ConnectionGate> {
    const gate = new ConnectionGate(innerPort);
    gate.#server.listen(0, '127.0.0.1');
    await once(gate.#server, 'listening');
    return gate;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get openConnections(): number {
    return this.#links.size;
  }

  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    for (const { client, inner } of this.#links) {
      if (!inner) continue;
      client.unpipe(inner).pause();
      inner.unpipe(client).pause();
    }
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    for (const link of this.#links) {
      if (link.doomed === true) link.client.resetAndDestroy();
      else if (!link.inner) this.#join(link);
      else if (!link.inner.connecting) flow(link.client, link.inner);
    }
  }

  /** Breaks the connection that the HTTPS server sees from this port. */
  reset(innerPort: number | undefined): void {
    const link = innerPort === undefined ? undefined : this.#byInnerPort.get(innerPort);
    if (!link) return;
    if (this.#paused) link.doomed = true;
    else link.client.resetAndDestroy();
  }

  /** Even while paused: this is what the test asked for. */
  resetAll(): void {
    for (const { client } of this.#links) client.resetAndDestroy();
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.resetAll();
    await closed;
  }

  #accept(client: Socket): void {
    const link: Link = { client };
    this.#links.add(link);
    // Resets are what this is about; `close` follows and does the rest.
    client.on('error', () => undefined);
    client.once('close', () => {
      this.#links.delete(link);
      link.inner?.destroy();
    });
    if (!this.#paused) this.#join(link);
  }

  #join(link: Link): void {
    const inner = connect({ host: '127.0.0.1', port: this.#innerPort, noDelay: true });
    link.inner = inner;
    let localPort: number | undefined;
    inner.once('connect', () => {
      localPort = inner.localPort;
      if (localPort !== undefined) this.#byInnerPort.set(localPort, link);
      if (!this.#paused) flow(link.client, inner);
    });
    inner.on('error', () => undefined);
    inner.once('close', () => {
      if (localPort !== undefined) this.#byInnerPort.delete(localPort);
      if (this.#paused) link.doomed = true;
      else link.client.destroySoon();
    });
  }
}

function flow(client: Socket, inner: Socket): void {
  client.pipe(inner);
  inner.pipe(client);
}
