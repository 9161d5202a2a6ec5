/** A kind of the demo: a rocket whose launch takes a few seconds and survives the death of its operator. */
import { setTimeout as delay } from 'node:timers/promises';
import { defineFlow, defineKind, defineSchema, defineTasks, type ObjectOf, z } from 'taskflow-operator';

const TANK_STEPS = 10;
const STEP_MS = 250;

const schema = defineSchema({
  group: 'demo.taskflow.dev',
  version: 'v1alpha1',
  kind: 'Rocket',
  description: 'A rocket that is launched by a task flow.',
  spec: z.object({ crew: z.array(z.string()).min(1).describe('Who flies with it.') }),
  status: z.object({ fuel: z.int().optional().describe('How full the tanks are, in per cent.') }),
});

const tasks = defineTasks(schema, {
  /** Saves how far it has come, so that a restart does not begin with empty tanks. */
  async fillTanks(ctx) {
    for (let step = Number(ctx.saved['step'] ?? 0); step < TANK_STEPS; step++) {
      await ctx.guard();
      await delay(STEP_MS, undefined, { signal: ctx.signal });
      ctx.heartbeat({ percent: (100 * (step + 1)) / TANK_STEPS, message: 'fuelling' });
      await ctx.checkpoint({ step: String(step + 1) });
    }
    return { status: { fuel: 100 } };
  },
  async boardCrew(ctx) {
    ctx.event('Normal', 'Boarded', `${ctx.item ?? 'somebody'} is on board`);
    await delay(STEP_MS, undefined, { signal: ctx.signal });
  },
  async ignite(ctx) {
    await delay(2 * STEP_MS, undefined, { signal: ctx.signal });
    if (ctx.attempt === 1) throw new Error('engine 3 did not light');
  },
  /** Asks again and again without holding a place; after a restart, too. */
  async reachOrbit(ctx) {
    const height = Number(ctx.saved['height'] ?? 0) + 200;
    if (height >= 400) return undefined;
    return { ...ctx.wait(500, 'the orbit at 400 km'), checkpoint: { height: String(height) } };
  },
});

const launch = defineFlow<ObjectOf<typeof schema>>('launch')
  .step(tasks.fillTanks)
  .foreach('board the crew', ({ spec }) => spec.crew, tasks.boardCrew)
  .step(tasks.ignite)
  .step(tasks.reachOrbit)
  .to('flying')
  .onFailure('retry from current', { maxRetry: 5 });

export default defineKind(schema, {
  states: { ready: { flow: launch }, flying: { ready: true }, failed: { failed: true } },
  tasks,
});
