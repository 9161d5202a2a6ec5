/** Commands in Markdown and what they print: documentation that can be run. */
export interface DocumentedCommand {
  readonly command: string;
  readonly output: string;
}

/** Of all blocks marked `console`: lines after `$ `, each with what follows up to the next. */
export function documentedCommands(markdown: string): DocumentedCommand[] {
  const blocks = [...markdown.matchAll(/^```console\n(.*?)^```$/gms)].map(([, block = '']) => block);
  return blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .filter((part) => part.trim() !== '')
      .map((part) => {
        const [command = '', ...output] = part.trimEnd().split('\n');
        return { command, output: output.join('\n') };
      }),
  );
}

/** Without what differs from run to run: ages, and blanks at the ends of lines. */
export function comparable(output: string): string {
  return output
    .trimEnd()
    .split('\n')
    .map((line) => line.trimEnd().replace(/\b(\d+[dhms])+$/, 'AGE'))
    .join('\n');
}
