/** A flow that waits, for a person and for a Job, without holding a place in the pool and across restarts. */
import {
  AlreadyExists,
  configMaps,
  defineFlow,
  defineKind,
  defineSchema,
  defineTasks,
  jobs,
  NotFound,
  ownerReferenceTo,
  PermanentError,
  z,
} from 'taskflow-operator';

const schema = defineSchema({
  group: 'examples.taskflow.dev',
  version: 'v1alpha1',
  kind: 'Release',
  description: 'Runs a command once somebody has approved it.',
  spec: z.object({
    approval: z.string().min(1).describe('ConfigMap that must say `approved: "yes"`.'),
    command: z.array(z.string()).min(1).describe('What is run.'),
  }),
  status: z.object({ job: z.string().optional().describe('The Job that runs it.') }),
});

const tasks = defineTasks(schema, {
  waitForApproval: {
    // A wait is no work: it may last.
    timeoutMs: 7 * 24 * 3_600_000,
    async run(ctx) {
      const { namespace } = ctx.object.metadata;
      const { approval } = ctx.object.spec;
      return ctx.waitUntil(
        async () => {
          try {
            const { data } = await ctx.client.get(configMaps, { namespace, name: approval });
            return data?.['approved'] === 'yes';
          } catch (error) {
            if (error instanceof NotFound) return false;
            throw error;
          }
        },
        {
          intervalMs: 1_000,
          timeoutMs: 7 * 24 * 3_600_000,
          reason: `approved: "yes" in ConfigMap ${approval}`,
        },
      );
    },
  },

  async startJob(ctx) {
    const { name, namespace = '' } = ctx.object.metadata;
    const owner = ownerReferenceTo(ctx.object);
    const job = {
      metadata: { name: `${name}-release`, namespace, ownerReferences: [owner] },
      spec: {
        backoffLimit: 0,
        template: {
          spec: {
            restartPolicy: 'Never',
            containers: [{ name: 'main', image: 'process', command: ctx.object.spec.command }],
          },
        },
      },
    };
    await ctx.guard();
    try {
      await ctx.client.create(jobs, job);
    } catch (error) {
      // An attempt before this one has made it: the operator ended between the call and the record of it.
      if (!(error instanceof AlreadyExists)) throw error;
    }
    return { status: { job: job.metadata.name } };
  },

  async waitForJob(ctx) {
    const { namespace } = ctx.object.metadata;
    const name = ctx.object.status?.job ?? '';
    return ctx.waitUntil(
      async () => {
        const { status } = await ctx.client.get(jobs, { namespace, name });
        const failure = status?.conditions?.find(
          ({ type, status: is }) => type === 'Failed' && is === 'True',
        );
        if (failure)
          throw new PermanentError(`Job ${name} failed: ${failure.message}`, { reason: 'JobFailed' });
        return (status?.succeeded ?? 0) > 0;
      },
      { intervalMs: 1_000, reason: `the end of Job ${name}` },
    );
  },
});

const release = defineFlow('release', [tasks.waitForApproval, tasks.startJob, tasks.waitForJob])
  .to('released')
  .onFailure('retry from current', { maxRetry: 5 });

export default defineKind(schema, {
  states: {
    new: { flow: release },
    released: { ready: true },
    failed: { failed: true },
  },
  tasks,
  rbac: [
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] },
    { apiGroups: ['batch'], resources: ['jobs'], verbs: ['get', 'create'] },
  ],
});
