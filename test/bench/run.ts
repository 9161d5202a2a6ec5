/**
 * `npm run bench [-- name…] [--short] [--full] [--json]`: prints what was
 * measured, and fails where a promise is not kept. With --json the last line
 * holds the figures for programs.
 */
import { parseArgs } from 'node:util';
import { table } from '../../src/cli/terminal.ts';
import { type Bench, isMissed, type Row } from './bench.ts';
import { engine } from './engine.ts';
import { kube } from './kube.ts';
import { startStop } from './start-stop.ts';

const BENCHES: readonly Bench[] = [startStop, kube, engine];

const { values, positionals } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const unknown = positionals.filter((name) => !BENCHES.some((bench) => bench.name === name));
if (unknown.length > 0) {
  process.stderr.write(
    `no benchmark named ${unknown.join(', ')}; there are: ${BENCHES.map(({ name }) => name).join(', ')}\n`,
  );
  process.exit(2);
}

const measured: Row[] = [];
for (const bench of BENCHES) {
  if (positionals.length > 0 && !positionals.includes(bench.name)) continue;
  const rows = await bench.run(values);
  measured.push(...rows);
  process.stdout.write(`\n${bench.name}\n${table([['WHAT', 'MEASURED', 'PROMISED'], ...rows.map(cells)])}\n`);
}
const missed = measured.filter(isMissed);
for (const { what } of missed) process.stderr.write(`missed: ${what}\n`);
if (values.json) process.stdout.write(`${JSON.stringify(figures(measured))}\n`);
// One short round on a busy machine shows that the bench works; only a full one judges.
process.exitCode = missed.length === 0 || values.short ? 0 : 1;

function cells({ what, value, unit, atMost, atLeast }: Row): string[] {
  const format = (number: number): string =>
    `${unit === 'x' || number < 10 ? number.toFixed(2) : Math.round(number)} ${unit}`;
  const promises = [
    ...(atMost === undefined ? [] : [`at most ${format(atMost)}`]),
    ...(atLeast === undefined ? [] : [`at least ${format(atLeast)}`]),
  ];
  return [what, format(value), promises.join(', ')];
}

function figures(rows: readonly Row[]): Record<string, number> {
  return Object.fromEntries(rows.flatMap(({ key, value }) => (key === undefined ? [] : [[key, value]])));
}
