/** `npm run check`: everything CI runs but the tests. All checks run, so that one run shows every fault. */
import { spawn } from 'node:child_process';

const CHECKS: Readonly<Record<string, readonly string[]>> = {
  format: ['prettier', '--check', '--log-level', 'warn', '.'],
  lint: ['npm', 'run', '--silent', 'lint'],
  types: ['npm', 'run', '--silent', 'typecheck'],
  'unused code': ['npm', 'run', '--silent', 'knip'],
  'generated files': ['npm', 'run', '--silent', 'generate', '--', '--check'],
  build: ['npm', 'run', '--silent', 'build'],
};

async function check(name: string, [command = '', ...args]: readonly string[]): Promise<boolean> {
  const began = performance.now();
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const code = await new Promise<number>((resolve) => {
    child.on('error', (error) => {
      output += error.message;
      resolve(1);
    });
    child.on('close', (exitCode) => resolve(exitCode ?? 1));
  });
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  process.stdout.write(`${code === 0 ? '✔' : '✘'} ${name} (${seconds} s)\n${code === 0 ? '' : output}`);
  return code === 0;
}

const results = await Promise.all(Object.entries(CHECKS).map(([name, command]) => check(name, command)));
process.exitCode = results.every(Boolean) ? 0 : 1;
