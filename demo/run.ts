/** `npm run demo [-- story…]`: a real control plane, the stories on it, and nothing left behind. */
import { spawn } from 'node:child_process';
import { mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { runSteps } from '../src/cli/progress.ts';
import { type StartedPlane, startSteps } from '../src/cli/start-steps.ts';
import { paint, print, printError, seconds } from '../src/cli/terminal.ts';
import { messageOf } from '../src/kube/thrown.ts';
import type { ControlPlane } from '../src/local-cluster/control-plane.ts';
import type { Stage, Story } from './story.ts';

const TASKFLOW = join(import.meta.dirname, '../bin/taskflow.js');
const STORIES = join(import.meta.dirname, 'stories');

/** `02-drplan.ts` is told as `drplan`; the number gives the order. */
function nameOf(file: string): string {
  return basename(file, '.ts').replace(/^\d+-/, '');
}

async function loadStories(wanted: readonly string[]): Promise<Story[]> {
  const files = (await readdir(STORIES)).filter((file) => file.endsWith('.ts')).toSorted();
  const unknown = wanted.filter((name) => !files.map(nameOf).includes(name));
  if (unknown.length > 0)
    throw new Error(`no story named ${unknown.join(', ')}; there are: ${files.map(nameOf).join(', ')}`);
  const chosen = files.filter((file) => wanted.length === 0 || wanted.includes(nameOf(file)));
  return Promise.all(
    chosen.map(async (file) => ((await import(join(STORIES, file))) as { default: Story }).default),
  );
}

function stageOn(plane: ControlPlane, signal: AbortSignal): Stage {
  return {
    clusters: plane.clusters,
    signal,
    say: (text) => print(`\n${text}`),
    kubectl: (args, stdin) => {
      print(paint('cyan', `$ kubectl ${args.join(' ')}${stdin === undefined ? '' : ' <<EOF'}`));
      if (stdin !== undefined) print(paint('dim', `${stdin}EOF`));
      return show(plane, [plane.binaries.paths.kubectl, ...args], signal, stdin);
    },
    taskflow: (args) => {
      print(paint('cyan', `$ taskflow ${args.join(' ')}`));
      return show(plane, [process.execPath, TASKFLOW, ...args], signal);
    },
  };
}

/** Runs a command as a user of the cluster would; its output streams as it comes. */
function show(
  plane: ControlPlane,
  [program = '', ...args]: readonly string[],
  signal: AbortSignal,
  stdin?: string,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const child = spawn(program, args, {
    env: { ...process.env, KUBECONFIG: plane.clusters[0].kubeconfig },
    stdio: ['pipe', 'inherit', 'inherit'],
    signal,
  });
  child.on('error', reject);
  child.on('exit', (code) =>
    code === 0 ? resolve() : reject(new Error(`${args.join(' ')} failed with exit code ${code}`)),
  );
  child.stdin?.end(stdin);
  return promise;
}

async function main(): Promise<void> {
  const began = performance.now();
  const stories = await loadStories(process.argv.slice(2));
  const enough = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => enough.abort(new Error('stopped by the viewer')));

  const result: StartedPlane = {};
  await runSteps(
    startSteps(
      {
        dir: await mkdtemp(join(tmpdir(), 'taskflow-demo-')),
        clusters: Math.max(...stories.map((story) => story.clusters ?? 1)),
        durable: false,
        ephemeral: true,
        signal: enough.signal,
      },
      result,
    ),
  );
  if (!result.plane) throw new Error('the control plane did not start');
  await using plane = result.plane;
  for (const story of stories) {
    const storyBegan = performance.now();
    print(`\n${paint('bold', `━━ ${story.title} ${'━'.repeat(Math.max(0, 70 - story.title.length))}`)}`);
    await story.tell(stageOn(plane, enough.signal));
    print(paint('green', `✔ ${story.title} (${seconds(performance.now() - storyBegan)})`));
  }
  print('\nStopping the control plane and removing what it wrote.');
  await plane.stop();
  print(`${paint('green', '✔')} demo finished in ${seconds(performance.now() - began)}`);
}

try {
  await main();
} catch (error) {
  printError(`${paint('red', 'error:')} ${messageOf(error)}`);
  process.exitCode = 1;
}
