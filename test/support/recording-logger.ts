/** A logger whose lines a test can read. Every line passes through the real logger. */
import { Writable } from 'node:stream';
import { createLogger, type Logger } from '../../src/runtime/logging.ts';

export interface RecordingLogger {
  readonly log: Logger;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
}

export function recordingLogger(verbosity = 2): RecordingLogger {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(JSON.parse(chunk.toString('utf8')) as Record<string, unknown>);
      done();
    },
  });
  return { log: createLogger({ format: 'json', verbosity, stream }), lines };
}
