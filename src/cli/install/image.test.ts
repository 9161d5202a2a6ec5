/** The Dockerfile cannot be built everywhere: what it says is held against the repository and the Deployment. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manifests } from './manifests.ts';

const ROOT = join(import.meta.dirname, '../../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

interface Instruction {
  readonly name: string;
  readonly args: string;
}
interface Stage {
  readonly image: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

function stagesOf(dockerfile: string): Stage[] {
  const instructions = dockerfile
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => ({ name: line.split(' ', 1)[0] ?? '', args: line.slice(line.indexOf(' ') + 1).trim() }));
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const instruction of instructions) {
    if (instruction.name !== 'FROM') stages.at(-1)?.instructions.push(instruction);
    else {
      const [image = '', , name] = instruction.args.split(' ');
      stages.push({ image, name, instructions: [] });
    }
  }
  return stages;
}

/** Where a COPY takes its files from: a stage, or the repository. */
function copies({ instructions }: Stage): { from: string | undefined; sources: string[] }[] {
  return instructions
    .filter(({ name }) => name === 'COPY')
    .map(({ args }) => {
      const words = args.split(' ');
      const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length);
      return { from, sources: words.filter((word) => !word.startsWith('--')).slice(0, -1) };
    });
}

const stages = stagesOf(read('Dockerfile'));
const [final = { image: '', name: undefined, instructions: [] }] = stages.slice(-1);
const argsOf = (name: string): string => final.instructions.find((each) => each.name === name)?.args ?? '';
const fromRepository = stages.flatMap(copies).filter(({ from }) => from === undefined);

describe('the image', () => {
  it('copies what is there, and the context has nothing else', () => {
    const copied = new Set(fromRepository.flatMap(({ sources }) => sources));
    expect([...copied].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const [everything, ...lines] = read('.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(everything).toBe('*');
    const letIn = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
    expect(new Set(letIn)).toEqual(copied);
  });

  it('takes only from stages before it', () => {
    const tooEarly = stages.flatMap((stage, at) => {
      const before = new Set([undefined, ...stages.slice(0, at).map(({ name }) => name)]);
      return copies(stage).filter(({ from }) => !before.has(from));
    });
    expect(tooEarly).toEqual([]);
  });

  it('has the package, but for what builds a local control plane', () => {
    const { files } = JSON.parse(read('package.json')) as { files: string[] };
    const inImage = copies(final).flatMap(({ sources }) =>
      sources.map((path) => path.replace('/build/', '')),
    );
    expect(files.filter((path) => !inImage.includes(path))).toEqual(['tools/kube-binaries']);
    expect(inImage).toEqual(expect.arrayContaining(['package.json', 'node_modules', 'LICENSE']));
  });

  it('is built with the Node that the package needs, and ends as nothing but files', () => {
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    const major = /\d+/.exec(engines.node)?.[0];
    for (const { image } of stages.slice(0, -1)) expect(image).toMatch(new RegExp(`^node:${major}-`));
    expect(final.image).toBe('scratch');
  });

  it('runs as the Deployment runs it', () => {
    const deployment = manifests({ systems: [] }).find(({ kind }) => kind === 'Deployment');
    const { securityContext, containers } = (
      deployment as unknown as {
        spec: {
          template: {
            spec: {
              securityContext: { runAsUser: number; runAsGroup: number };
              containers: { ports: { containerPort: number }[] }[];
            };
          };
        };
      }
    ).spec.template.spec;
    expect(argsOf('USER')).toBe(`${securityContext.runAsUser}:${securityContext.runAsGroup}`);
    const ports = containers[0]?.ports.map(({ containerPort }) => containerPort);
    expect(argsOf('EXPOSE').split(' ').map(Number)).toEqual(ports);
    const entry = JSON.parse(argsOf('ENTRYPOINT')) as string[];
    expect(existsSync(join(ROOT, entry.at(-1)?.replace('/app/', '') ?? ''))).toBe(true);
  });
});
