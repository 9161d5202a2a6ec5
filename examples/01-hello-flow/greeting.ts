/** A linear flow with retry: says hello as often as asked, then waits for an answer. */
import { defineFlow, defineKind, defineSchema, defineTasks, type ObjectOf, z } from 'taskflow-operator';

const schema = defineSchema({
  group: 'examples.taskflow.dev',
  version: 'v1alpha1',
  kind: 'Greeting',
  shortNames: ['hi'],
  description: 'Greets somebody.',
  spec: z.object({
    to: z.string().min(1).describe('Who is greeted.'),
    times: z.int().min(1).max(10).default(1).describe('How often.'),
    deafFor: z.int().min(0).max(5).default(0).describe('How many attempts it takes until they hear.'),
  }),
  status: z.object({ said: z.int().default(0).describe('How often it was said.') }),
  columns: [{ name: 'To', jsonPath: '.spec.to' }],
});
export type Greeting = ObjectOf<typeof schema>;

const tasks = defineTasks(schema, {
  async sayHello(ctx) {
    const { to, times, deafFor } = ctx.object.spec;
    if (ctx.attempt <= deafFor) throw new Error(`${to} did not hear`);
    for (let said = ctx.object.status?.said ?? 0; said < times; said++) {
      await ctx.guard();
      ctx.heartbeat({ percent: (100 * said) / times });
      ctx.log.info('hello', { to });
    }
    return { status: { said: times } };
  },
  waitForAnswer: {
    timeoutMs: 600_000,
    run: async (ctx) =>
      ctx.waitUntil(
        async () =>
          (await ctx.refresh()).metadata.annotations?.['examples.taskflow.dev/answer'] !== undefined,
        {
          intervalMs: 1_000,
          reason: 'the annotation examples.taskflow.dev/answer',
        },
      ),
  },
});

const greet = defineFlow('greet', [tasks.sayHello, tasks.waitForAnswer])
  .to('running')
  .onFailure('retry from current', { maxRetry: 5 });

export default defineKind(schema, {
  states: {
    new: { flow: greet },
    running: {
      ready: true,
      next: (object) => ((object.status?.said ?? 0) < object.spec.times ? 'new' : undefined),
    },
    failed: { failed: true },
  },
  tasks,
});
