/**
 * Bodies with two limits: one per request, and one for all that are being read
 * at the same time, because the port is open to everybody in the cluster. What
 * is refused is still read for a while without being kept: a client that is
 * cut off in the middle of sending never gets to see the answer.
 */
import type { IncomingMessage } from 'node:http';

export type Body = Buffer | 'too large' | 'busy' | 'cut off';

/** Times the limit that is read, and thrown away, before the answer is given. */
const PATIENCE = 4;

/** Bytes in memory for all requests together. */
export class ByteBudget {
  readonly #limit: number;
  #taken = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  take(bytes: number): boolean {
    if (this.#taken + bytes > this.#limit) return false;
    this.#taken += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#taken -= bytes;
  }
}

/** Hands the body to `use` and gives its memory back afterwards. */
export async function withBody<T>(
  request: IncomingMessage,
  limit: number,
  budget: ByteBudget,
  use: (body: Body) => Promise<T>,
): Promise<T> {
  let held = 0;
  const keep = (bytes: number): boolean => {
    if (!budget.take(bytes)) return false;
    held += bytes;
    return true;
  };
  const release = (): void => {
    budget.giveBack(held);
    held = 0;
  };
  try {
    return await use(await read(request, limit, keep, release));
  } finally {
    release();
  }
}

/** Reads on without keeping anything, within reason. */
export async function discardBody(request: IncomingMessage, limit: number): Promise<void> {
  await read(
    request,
    limit,
    () => false,
    () => {},
  );
}

async function read(
  request: IncomingMessage,
  limit: number,
  keep: (bytes: number) => boolean,
  release: () => void,
): Promise<Body> {
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > PATIENCE * limit) return 'too large';
  let refused: 'too large' | 'busy' | undefined = declared > limit ? 'too large' : undefined;
  let size = 0;
  let chunks: Buffer[] = [];
  try {
    // Leaving the loop early must not close the socket: the answer goes through it.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (refused === undefined && size > limit) refused = 'too large';
      if (refused === undefined && !keep(chunk.length)) refused = 'busy';
      if (refused === undefined) chunks.push(chunk);
      else if (chunks.length > 0) {
        chunks = [];
        release();
      }
      if (size > PATIENCE * limit) break;
    }
  } catch {
    return 'cut off';
  }
  return refused ?? Buffer.concat(chunks);
}
