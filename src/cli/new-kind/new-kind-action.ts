/** What `taskflow new-kind` does: writes files that are not there yet. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { print } from '../terminal.ts';
import { UserError } from '../user-error.ts';
import { type KindNames, namesOf } from './kind-names.ts';
import { kindTemplate } from './kind-template.ts';
import { packageTemplate, readmeTemplate, sampleTemplate } from './surrounding-templates.ts';
import { testTemplate } from './test-template.ts';

export interface NewKindFlags {
  readonly dir?: string;
  readonly group: string;
}

export async function newKindAction(kind: string, flags: NewKindFlags): Promise<void> {
  const names = namesOf(kind, flags.group);
  const dir = resolve(flags.dir ?? names.file);
  const files = filesOf(names, dir);
  const shown = (file: string): string => relative(process.cwd(), join(dir, file)) || file;
  const existing = Object.keys(files).filter((file) => existsSync(join(dir, file)));
  if (existing.length > 0)
    throw new UserError(`nothing was written, since these exist: ${existing.map(shown).join(', ')}`);
  await mkdir(dir, { recursive: true });
  for (const [file, text] of Object.entries(files)) {
    // Never over a file that came between the look and now.
    await writeFile(join(dir, file), text, { flag: 'wx' });
    print(`wrote ${shown(file)}`);
  }
  print(`\nNext:\n  node --test ${shown(`${names.file}.test.ts`)}`);
  print(`  npx taskflow up --plugin ./${shown(`${names.file}.ts`)}`);
}

function filesOf(names: KindNames, dir: string): Readonly<Record<string, string>> {
  const { file } = names;
  return {
    [`${file}.ts`]: kindTemplate(names),
    [`${file}.test.ts`]: testTemplate(names),
    [`${file}.yaml`]: sampleTemplate(names),
    'README.md': readmeTemplate(names),
    // Inside of a project there is one already.
    ...(isInProject(dir) ? {} : { 'package.json': packageTemplate(names) }),
  };
}

function isInProject(dir: string): boolean {
  if (existsSync(join(dir, 'package.json'))) return true;
  const parent = dirname(dir);
  return parent !== dir && isInProject(parent);
}
