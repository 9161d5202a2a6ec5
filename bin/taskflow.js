#!/usr/bin/env node
// Plain JavaScript that any Node can read: it finds the Node 24 that the rest needs. A checkout runs its
// TypeScript sources on the Node of its dev dependencies; the published package runs dist/.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const sources = join(root, 'src', 'cli', 'main.ts');
const main = existsSync(sources) ? sources : join(root, 'dist', 'cli', 'main.js');
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major > 24 || (major === 24 && minor >= 11)) {
  await import(pathToFileURL(main).href);
} else {
  const newer = join(root, 'node_modules', 'node', 'bin', 'node');
  if (!existsSync(newer)) {
    process.stderr.write(`taskflow needs Node 24.11 or later; this is ${process.version}\n`);
    process.exit(1);
  }
  // The fourth pipe closes when this process dies, however it dies; the child then ends as well.
  const child = spawn(newer, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    env: { ...process.env, TASKFLOW_PARENT_PIPE: '3' },
  });
  // A terminal sends Ctrl-C to both of us: we stay until the child has stopped in order.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => signal !== 'SIGINT' && child.kill(signal));
  }
  child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
}
