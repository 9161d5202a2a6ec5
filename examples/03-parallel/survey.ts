/** Several tasks at once: a parallel step, and one member per item of a list in the spec. */
import {
  defineFlow,
  defineKind,
  defineSchema,
  defineTasks,
  listSet,
  type ObjectOf,
  PermanentError,
  z,
} from 'taskflow-operator';

const schema = defineSchema({
  group: 'examples.taskflow.dev',
  version: 'v1alpha1',
  kind: 'Survey',
  description: 'Asks every region how many people are satisfied.',
  spec: z.object({
    regions: listSet(z.array(z.string().min(1)).min(1).max(20)).describe('Where it is asked, each once.'),
  }),
  status: z.object({
    answers: z.record(z.string(), z.int()).optional().describe('Satisfied people by region.'),
    total: z.int().optional().describe('All of them.'),
  }),
  columns: [{ name: 'Total', jsonPath: '.status.total' }],
});

const tasks = defineTasks(schema, {
  async printForms(ctx) {
    ctx.log.info('forms are printed', { regions: ctx.object.spec.regions.length });
  },

  async trainInterviewers(ctx) {
    ctx.log.info('interviewers are trained');
  },

  /** Runs once per region, all at the same time; `ctx.item` is the region. */
  async askRegion(ctx) {
    const { item: region = '' } = ctx;
    if (region === 'atlantis') throw new PermanentError('nobody lives there', { reason: 'NoSuchRegion' });
    await ctx.clock.sleep(500, ctx.signal);
    await ctx.guard();
    return { status: { answers: { [region]: 10 * region.length } } };
  },

  async sumUp(ctx) {
    const { answers = {} } = (await ctx.refresh()).status ?? {};
    return { status: { total: Object.values(answers).reduce((sum, count) => sum + count, 0) } };
  },
});

const survey = defineFlow<ObjectOf<typeof schema>>('survey')
  .parallel('prepare', [tasks.printForms, tasks.trainInterviewers])
  .foreach('ask regions', ({ spec }) => spec.regions, tasks.askRegion)
  .step(tasks.sumUp)
  .to('done')
  .onFailure('retry from current', { maxRetry: 3 });

export default defineKind(schema, {
  states: {
    new: { flow: survey },
    done: {
      ready: true,
      next: ({ spec, status }) =>
        spec.regions.every((region) => status?.answers?.[region] !== undefined) ? undefined : 'new',
    },
    failed: { failed: true },
  },
  tasks,
  // A spec that was corrected leads out of `failed`.
  retryOnSpecChange: true,
});
