/**
 * `npm run generate`: files that are made from the sources and checked in.
 * With --check nothing is written, and a file that is not up to date is an error.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { format } from 'prettier';
import { chart } from './generate/chart.ts';
import { cliReference } from './generate/cli-reference.ts';
import { configurationReference } from './generate/configuration-reference.ts';
import { crds } from './generate/crds.ts';
import { rbac } from './generate/rbac.ts';

type Generator = () => Promise<Readonly<Record<string, string>>>;

/** Each gives file names below the repository and their content. */
const GENERATORS: readonly Generator[] = [cliReference, configurationReference, crds, rbac, chart];

const root = dirname(import.meta.dirname);
const checkOnly = process.argv.includes('--check');
const outdated: string[] = [];

for (const generate of GENERATORS) {
  for (const [file, raw] of Object.entries(await generate())) {
    const path = join(root, file);
    const content = await format(raw, { filepath: path, singleQuote: true, printWidth: 110 });
    if ((await readFile(path, 'utf8').catch(() => '')) === content) continue;
    outdated.push(file);
    if (checkOnly) continue;
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
}

if (checkOnly && outdated.length > 0) {
  process.stderr.write(`not up to date: ${outdated.join(', ')}; run: npm run generate\n`);
  process.exitCode = 1;
} else {
  process.stdout.write(
    outdated.length === 0 ? 'everything is up to date\n' : `wrote ${outdated.join(', ')}\n`,
  );
}
