/** `npm run bench [-- name…] [--short]`: prints what was measured, and fails where a promise is not kept. */
import { parseArgs } from 'node:util';
import { table } from '../../src/cli/terminal.ts';
import type { Bench, Row } from './bench.ts';
import { kube } from './kube.ts';
import { startStop } from './start-stop.ts';

const BENCHES: readonly Bench[] = [startStop, kube];

const { values, positionals } = parseArgs({
  options: { short: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const unknown = positionals.filter((name) => !BENCHES.some((bench) => bench.name === name));
if (unknown.length > 0) {
  process.stderr.write(
    `no benchmark named ${unknown.join(', ')}; there are: ${BENCHES.map(({ name }) => name).join(', ')}\n`,
  );
  process.exit(2);
}

const missed: Row[] = [];
for (const bench of BENCHES) {
  if (positionals.length > 0 && !positionals.includes(bench.name)) continue;
  const rows = await bench.run(values);
  missed.push(...rows.filter(({ value, atMost = Infinity }) => value > atMost));
  process.stdout.write(`\n${bench.name}\n${table([['WHAT', 'MEASURED', 'PROMISED'], ...rows.map(cells)])}\n`);
}
for (const { what } of missed) process.stderr.write(`missed: ${what}\n`);
// One short round on a busy machine shows that the bench works; only a full one judges.
process.exitCode = missed.length === 0 || values.short ? 0 : 1;

function cells({ what, value, unit, atMost }: Row): string[] {
  const format = (number: number): string =>
    `${unit === 'ms' ? Math.round(number) : number.toFixed(2)} ${unit}`;
  return [what, format(value), atMost === undefined ? '' : `at most ${format(atMost)}`];
}
