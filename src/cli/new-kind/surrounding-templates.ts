/** What goes with a new kind: a sample, a page to begin with, and a project where there is none. */
import { version } from '../../version.ts';
import type { KindNames } from './kind-names.ts';

export function sampleTemplate({ kind, group, file }: KindNames): string {
  return `apiVersion: ${group}/v1alpha1
kind: ${kind}
metadata:
  name: my-${file}
spec:
  message: hello
  seconds: 10
`;
}

export function readmeTemplate({ kind, group, file }: KindNames): string {
  return `# ${kind}

\`\`\`sh
node --test                                                       # its test, on a real control plane
npx taskflow up --detach --data-dir ./cluster --plugin ./${file}.ts
npx taskflow kubectl --data-dir ./cluster apply -f ${file}.yaml
npx taskflow watch ${kind.toLowerCase()}.${group}/my-${file} --kubeconfig ./cluster/kubeconfig
npx taskflow down --data-dir ./cluster
\`\`\`
`;
}

export function packageTemplate({ file }: KindNames): string {
  const content = {
    name: file,
    private: true,
    type: 'module',
    scripts: { test: 'node --test' },
    dependencies: { 'taskflow-operator': `^${version}` },
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}
