/** What the steering commands do with their words and flags. */
import { nameText } from '../inspect/engine-object.ts';
import { findObject } from '../inspect/find-objects.ts';
import { refuseKindWithoutFlows } from '../inspect/flow-kinds.ts';
import { withScope } from '../inspect/scope.ts';
import { parseObjectTarget, refuseRest, usageError } from '../inspect/target.ts';
import { print, printError } from '../terminal.ts';
import { Order, type SteerFlags } from './order.ts';
import { type SteeringName, STEERINGS } from './steerings.ts';

/** Commands that take something after the object, and what they call it. */
const REST: Readonly<Partial<Record<SteeringName, { readonly what: string; readonly required: boolean }>>> = {
  skip: { what: 'task', required: false },
  reset: { what: 'state', required: true },
};

export async function steerAction(
  name: SteeringName,
  words: readonly string[],
  flags: SteerFlags,
): Promise<void> {
  const target = parseObjectTarget(words);
  const rest = REST[name];
  if (!rest) refuseRest(target);
  else if (rest.required && target.rest === '')
    throw usageError(`which ${rest.what}? It comes after the object`);
  await withScope(flags, async (scope) => {
    const found = await findObject(scope, target);
    await refuseKindWithoutFlows(scope, found);
    const order = new Order(scope, found, name, flags);
    const plan = order.plan(target.rest);
    if (!plan) return print(`${nameText(found.object)} ${STEERINGS[name].nothingToDo ?? ''}`);
    if (plan.choice !== undefined) printError(plan.choice);
    await order.carryOut(plan);
  });
}
