/** The kind itself: small, and with everything that a kind of some use has. */
import type { KindNames } from './kind-names.ts';

export function kindTemplate({ kind, words, file, group }: KindNames): string {
  return `/** What a ${kind} is, and what the operator does with it. */
import {
  configMaps,
  defineFlow,
  defineKind,
  defineSchema,
  defineTasks,
  ownerReferenceTo,
  z,
} from 'taskflow-operator';

const schema = defineSchema({
  group: '${group}',
  version: 'v1alpha1',
  kind: '${kind}',
  description: 'Writes a message into a ConfigMap, after some time.',
  spec: z.object({
    message: z.string().min(1).describe('What is written.'),
    seconds: z.int().min(0).max(3600).default(3).describe('How long it takes.'),
  }),
  status: z.object({ message: z.string().optional().describe('What was written.') }),
  columns: [{ name: 'Message', jsonPath: '.status.message' }],
});

// A task may be run again after a crash at any moment: it must then find what it has done, and do the rest.
const tasks = defineTasks(schema, {
  async countDown(ctx) {
    const { seconds } = ctx.object.spec;
    for (let left = Number(ctx.saved['left'] ?? seconds); left > 0; left--) {
      // Stored before it returns, so that a restarted operator goes on from here.
      await ctx.checkpoint({ left: String(left) });
      ctx.heartbeat({ percent: (100 * (seconds - left)) / seconds, message: \`\${left} s left\` });
      await ctx.clock.sleep(1_000, ctx.signal);
      await ctx.guard();
    }
  },

  async writeConfigMap(ctx) {
    const { name, namespace = '' } = ctx.object.metadata;
    const { message } = ctx.object.spec;
    const owner = ownerReferenceTo(ctx.object);
    // Throws if this process no longer leads, or the flow was cancelled. Before every side effect.
    await ctx.guard();
    await ctx.client.apply(
      configMaps,
      { metadata: { name: \`\${name}-message\`, namespace, ownerReferences: [owner] }, data: { message } },
      { fieldManager: '${file}' },
    );
    // Written together with the step to the next task. Tasks never write the status of their object themselves.
    return { status: { message } };
  },
});

const create = defineFlow('create ${words}', [tasks.countDown, tasks.writeConfigMap])
  .to('running')
  .onFailure('retry from current', { maxRetry: 10 });

export default defineKind(schema, {
  states: {
    new: { flow: create },
    running: {
      ready: true,
      next: ({ spec, status }) => (status?.message === spec.message ? undefined : 'new'),
    },
    failed: { failed: true },
  },
  tasks,
  // Beyond the objects of the kind itself.
  rbac: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'patch'] }],
});
`;
}
