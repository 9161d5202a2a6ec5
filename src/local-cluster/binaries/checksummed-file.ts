/**
 * One file from the network to disk, hashed on the way: the programs are
 * 100 MB each and never whole in memory. It counts only if its SHA-256 is the
 * published one.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type Dispatcher, request } from 'undici';
import { reasonOf, SourceFailedError } from './source.ts';

export interface FetchContext {
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
}

export interface FileRequest {
  readonly url: string;
  readonly path: string;
  readonly sha256: string;
  readonly onBytes: (received: number, total: number | undefined) => void;
}

/** An answer that stalls this long is as good as none. */
const STALL_TIMEOUT_MS = 30_000;
const SHA256_HEX = /^[\da-f]{64}$/i;

export async function fetchFile(file: FileRequest, context: FetchContext): Promise<void> {
  const { body, headers } = await get(file.url, context);
  const length = Number(headers['content-length']);
  const total = Number.isFinite(length) ? length : undefined;
  const hash = createHash('sha256');
  let received = 0;
  const hashing = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      hash.update(chunk);
      received += chunk.length;
      file.onBytes(received, total);
      yield chunk;
    }
  };
  try {
    await pipeline(body, hashing, createWriteStream(file.path, { mode: 0o755 }), { signal: context.signal });
  } catch (error) {
    throw new SourceFailedError(`${file.url} broke off: ${reasonOf(error)}`, { cause: error });
  }
  const actual = hash.digest('hex');
  if (actual !== file.sha256.toLowerCase()) {
    throw new SourceFailedError(
      `${file.url} does not match its checksum: published ${file.sha256}, received ${actual}`,
    );
  }
}

/**
 * Reads a published checksum: a file with nothing but the hash, or, given
 * `fileName`, the line of that file among many.
 */
export async function fetchChecksum(
  url: string,
  fileName: string | undefined,
  context: FetchContext,
): Promise<string> {
  const { body } = await get(url, context);
  const lines = (await body.text()).split('\n').map((line) => line.trim().split(/\s+/));
  const [hash] =
    lines.find((line) => fileName === undefined || line[1]?.replace(/^\*/, '') === fileName) ?? [];
  if (hash === undefined || !SHA256_HEX.test(hash)) {
    throw new SourceFailedError(`${url} has no SHA-256${fileName === undefined ? '' : ` of ${fileName}`}`);
  }
  return hash;
}

async function get(url: string, { dispatcher, signal }: FetchContext): Promise<Dispatcher.ResponseData> {
  const response = await request(url, {
    dispatcher,
    signal,
    headersTimeout: STALL_TIMEOUT_MS,
    bodyTimeout: STALL_TIMEOUT_MS,
  }).catch((error: unknown) => {
    throw new SourceFailedError(`cannot reach ${new URL(url).origin}: ${reasonOf(error)}`, { cause: error });
  });
  if (response.statusCode === 200) return response;
  await response.body.dump();
  throw new SourceFailedError(`${url} answers HTTP ${response.statusCode}`);
}
