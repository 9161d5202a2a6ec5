import { describe, expect, it } from 'vitest';
import {
  condition,
  engineObject,
  flow,
  graphFlow,
  NOW,
  parallelFlow,
} from '../../../test/fixtures/engine-objects.ts';
import { type Request, type SteeringName, STEERINGS } from './steerings.ts';

function plan(name: SteeringName, more: Partial<Request> = {}) {
  const object = engineObject({ operationContext: flow() });
  return STEERINGS[name].plan({ object, present: undefined, rest: '', now: NOW, ...more });
}
const idle = engineObject({ status: 'arrived' });
const parallel = engineObject({ operationContext: parallelFlow() });
const graph = engineObject({ operationContext: graphFlow() });
const foreignPause = engineObject({ conditions: [condition('Paused', 'True')] });

type Case = readonly [name: SteeringName, request: Partial<Request>, value: string | null | undefined];

describe('what steering asks for', () => {
  it.each<Case>([
    ['pause', {}, 'true'],
    ['resume', { present: 'true' }, null],
    ['resume', {}, undefined],
    ['retry', {}, '2030-01-01T10:02:00.000Z'],
    ['retry', { object: idle }, '2030-01-01T10:02:00.000Z'],
    ['skip', {}, 'cross ocean'],
    ['skip', { rest: 'cross ocean' }, 'cross ocean'],
    ['skip', { object: parallel }, 'set sails'],
    ['skip', { object: parallel, rest: 'set sail:main' }, 'set sail:main'],
    ['skip', { object: graph, rest: 'west' }, 'west'],
    ['cancel', {}, 'flow-1'],
    ['cancel', { flowId: '*' }, '*'],
    ['reset', { rest: 'arrived' }, 'arrived'],
  ])('%s %j', (name, request, value) => {
    expect(plan(name, request)?.value).toBe(value);
  });

  it.each<readonly [SteeringName, Partial<Request>, string]>([
    ['skip', { object: idle }, 'voyage/atlantic is in no flow, so there is no task to skip'],
    ['skip', { rest: 'load cargo' }, 'only a current task can be skipped: "cross ocean"'],
    ['skip', { object: graph }, 'several tasks are running, name one: "east", "west"'],
    ['skip', { object: graph, rest: 'north' }, 'can be skipped: "east", "west"'],
    ['cancel', { object: idle }, 'is in no flow, so there is nothing to cancel'],
    ['resume', { object: foreignPause }, 'is paused by another annotation'],
  ])('%s %j is refused', (name, request, message) => {
    expect(() => plan(name, request)).toThrow(message);
  });

  it('says what it chose for the user', () => {
    expect(plan('skip')?.choice).toBe('skipping task "cross ocean" of flow "sail"');
    expect(plan('cancel')?.choice).toBe('cancelling flow "sail" (flow-1)');
  });
});
