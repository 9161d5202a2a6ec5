/** A task in the flow of somebody else: greetings of example 01 are also said in the languages of phrasebooks. */
import {
  defineFlow,
  defineKind,
  defineSchema,
  defineTasks,
  type Engine,
  type TaskDef,
  z,
} from 'taskflow-operator';
import type { Greeting } from '../01-hello-flow/greeting.ts';

const schema = defineSchema({
  group: 'examples.taskflow.dev',
  version: 'v1alpha1',
  kind: 'Phrasebook',
  description: 'How to say hello in a language.',
  spec: z.object({
    language: z.string().min(1).describe('The language.'),
    hello: z.string().min(1).describe('Its word for hello.'),
  }),
  status: z.object({ letters: z.int().optional().describe('How many letters there are to learn.') }),
  columns: [{ name: 'Hello', jsonPath: '.spec.hello' }],
});

const tasks = defineTasks(schema, {
  countLetters: async (ctx) => ({ status: { letters: ctx.object.spec.hello.length } }),
});

const phrasebook = defineKind(schema, {
  states: {
    new: { flow: defineFlow('read phrasebook', [tasks.countLetters]).to('ready') },
    ready: { ready: true },
    failed: { failed: true },
  },
  tasks,
});

/** Goes into a flow of greetings, so it is given a Greeting. */
const translate: TaskDef<Greeting> = {
  name: 'translate',
  async run(ctx) {
    const { namespace } = ctx.object.metadata;
    for await (const { spec } of ctx.client.listAll(schema, { namespace })) {
      await ctx.guard();
      ctx.event('Normal', 'Translated', `${spec.hello}, ${ctx.object.spec.to}! (${spec.language})`);
    }
  },
};

export function register(engine: Engine): void {
  engine.registerKind(phrasebook);
  engine.extendFlow('greet', { after: 'say hello', insert: translate });
}
