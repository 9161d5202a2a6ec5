/** Long work step by step: a live list on a terminal, a line per change elsewhere. */
import { Listr } from 'listr2';

export interface Step {
  readonly title: string;
  /** `say` shows what is happening now; the text it returns replaces the title when done. */
  readonly run: (say: (line: string) => void) => Promise<string | void>;
}

export async function runSteps(steps: readonly Step[]): Promise<void> {
  await new Listr(
    steps.map(({ title, run }) => ({
      title,
      task: async (_context, task): Promise<void> => {
        const done = await run((line) => (task.output = line));
        if (done !== undefined) task.title = done;
      },
    })),
    {
      renderer: 'default',
      fallbackRenderer: 'simple',
      registerSignalListeners: false,
      rendererOptions: { showErrorMessage: false, collapseErrors: false },
    },
  ).run();
}
