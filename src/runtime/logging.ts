/**
 * One line per state change: a constant message and fields. Field names are
 * fixed here, so that one query finds everything about an object. Whatever
 * looks like a secret is masked on the way out.
 */
import { createLogger as createWinston, format, type Logger as Winston, transports } from 'winston';
import { maskSecrets, maskValue } from '../kube/mask-secrets.ts';
import { errorOf } from '../kube/thrown.ts';

export interface LogFields {
  readonly controller?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** `namespace/name`, where kind and parts are not at hand. */
  readonly object?: string;
  readonly flow?: string;
  readonly task?: string;
  readonly taskId?: string;
  readonly attempt?: number;
  readonly resourceVersion?: string;
  readonly reconcileId?: string;
  readonly error?: unknown;
  readonly [field: string]: unknown;
}

export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  trace(message: string, fields?: LogFields): void;
  /** A logger whose every line has these fields. */
  child(fields: LogFields): Logger;
}

export interface LoggingOptions {
  readonly format: 'json' | 'human';
  /** 0 info, 1 debug, 2 trace. */
  readonly verbosity: number;
  /** Default: standard error. */
  readonly stream?: NodeJS.WritableStream;
}

const LEVELS = { error: 0, warn: 1, info: 2, debug: 3, trace: 4 } as const;
type Level = keyof typeof LEVELS;
const VERBOSITY: readonly Level[] = ['info', 'debug', 'trace'];

export function createLogger({ format: style, verbosity, stream = process.stderr }: LoggingOptions): Logger {
  const level = VERBOSITY[Math.min(Math.max(0, verbosity), VERBOSITY.length - 1)] ?? 'info';
  const winston = createWinston({
    levels: LEVELS,
    level,
    format: format.printf(style === 'json' ? jsonLine : humanLine),
    transports: [new transports.Stream({ stream, eol: '\n' })],
    exitOnError: false,
  });
  return wrap(winston, {});
}

function wrap(winston: Winston, common: LogFields): Logger {
  const at =
    (level: Level) =>
    (message: string, fields: LogFields = {}): void => {
      if (!winston.isLevelEnabled(level)) return;
      winston.log({ level, message, fields: { ...common, ...fields } });
    };
  return {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    trace: at('trace'),
    child: (fields) => wrap(winston, { ...common, ...fields }),
  };
}

interface Entry {
  readonly level: string;
  readonly message: unknown;
  readonly fields?: LogFields;
}

function jsonLine({ level, message, fields = {} }: Entry): string {
  const line = {
    time: new Date().toISOString(),
    level,
    message: maskSecrets(String(message)),
    ...printable(fields),
  };
  return JSON.stringify(line);
}

function humanLine({ level, message, fields = {} }: Entry): string {
  const time = new Date().toISOString().slice(11, 23);
  const pairs = Object.entries(printable(fields)).map(([key, value]) => ` ${key}=${brief(value)}`);
  return `${time} ${level.toUpperCase().padEnd(5)} ${maskSecrets(String(message))}${pairs.join('')}`;
}

function printable(fields: LogFields): Record<string, unknown> {
  const { error, ...rest } = fields;
  const masked = maskValue(rest) as Record<string, unknown>;
  if (error === undefined) return masked;
  const failure = errorOf(error);
  return {
    ...masked,
    error: maskSecrets(failure.message),
    errorType: failure.name,
    ...(failure.cause instanceof Error && { cause: maskSecrets(failure.cause.message) }),
  };
}

function brief(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /[\s"=]/.test(text) ? JSON.stringify(text) : text;
}
