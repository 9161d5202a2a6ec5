/** docs/cli.md: the help texts of `taskflow`, so that the page cannot lie. */
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';

export async function cliReference(): Promise<Readonly<Record<string, string>>> {
  const program = createProgram('taskflow');
  const sections = program.commands.map((command) => `## taskflow ${command.name()}\n\n${block(command)}`);
  const intro = 'Made from the help texts by `npm run generate`; do not edit.';
  return { 'docs/cli.md': ['# Command line', intro, block(program), ...sections].join('\n\n') };
}

function block(command: Command): string {
  const help = command.configureHelp({ helpWidth: 100 }).helpInformation();
  return `\`\`\`text\n${help.trimEnd()}\n\`\`\``;
}
