import { describe, expect, it } from 'vitest';
import { defineFlow, defineKind, defineSchema, defineTasks, type ObjectOf, z } from '../index.ts';
import { FlowCatalogue, type FlowExtension } from './flow-catalogue.ts';
import type { FlowKind } from './flow-kind.ts';

const schemaOf = (kind: string) =>
  defineSchema({ group: 'test.taskflow.dev', version: 'v1', kind, spec: z.object({}), status: z.object({}) });

function kindOf(
  kind: string,
  flowName: string,
  shape: { to?: string; failure?: string; cancel?: string } = {},
): FlowKind {
  const schema = schemaOf(kind);
  type O = ObjectOf<typeof schema>;
  const tasks = defineTasks(schema, { one: async () => undefined, two: async () => undefined });
  const flow = defineFlow<O>(flowName, [tasks.one, tasks.two])
    .to(shape.to ?? 'done')
    .onFailure('retry over', { to: shape.failure ?? 'failed' });
  const states = {
    new: { flow: shape.cancel === undefined ? flow : flow.cancelTo(shape.cancel) },
    done: {},
    failed: { failed: true },
  };
  return defineKind(schema, { tasks, states }).flowKind as unknown as FlowKind;
}

describe('the catalogue of flows', () => {
  it('finds nothing wrong with what is right', () => {
    const kinds = [kindOf('Ship', 'sail'), kindOf('Plane', 'fly')];
    expect(new FlowCatalogue().faults(kinds)).toEqual([]);
    expect(new FlowCatalogue().warnings(kinds)).toEqual([]);
  });

  it('names both owners of a flow that is defined twice', () => {
    expect(new FlowCatalogue().faults([kindOf('Ship', 'go'), kindOf('Plane', 'go')])).toEqual([
      'the flow "go" is defined twice: by Ship.test.taskflow.dev and by Plane.test.taskflow.dev',
    ]);
  });

  it.each([
    [{ to: 'sunk' }, 'the target of flow "sail" is "sunk"'],
    [{ failure: 'lost' }, 'the failure status of flow "sail" is "lost"'],
    [{ failure: '' }, 'is retried over, but has no failure status'],
    [{ cancel: 'ashore' }, 'the cancel status of flow "sail" is "ashore"'],
  ])('refuses %j', (shape, fault) => {
    expect(new FlowCatalogue().faults([kindOf('Ship', 'sail', shape)])).toEqual([
      expect.stringContaining(fault),
    ]);
  });

  const insert = { name: 'audit', run: async () => undefined } as FlowExtension['insert'];

  it.each([
    [{ flow: 'swim', after: 'one' }, 'there is no flow "swim"'],
    [{ flow: 'sail', after: 'three' }, 'the flow "sail" has no step "three"'],
    [{ flow: 'sail', after: 'one', before: 'two' }, 'cannot come both after "one" and before "two"'],
  ])('refuses an extension at %j', (at, fault) => {
    const faults = new FlowCatalogue([{ ...at, insert }]).faults([kindOf('Ship', 'sail')]);
    expect(faults).toEqual([expect.stringContaining(fault)]);
  });

  it.each([
    [{ after: 'one' }, ['one', 'audit', 'two']],
    [{ before: 'one' }, ['audit', 'one', 'two']],
  ])('inserts a task at %j', (at, steps) => {
    const kind = kindOf('Ship', 'sail');
    const catalogue = new FlowCatalogue([{ flow: 'sail', ...at, insert }]);
    expect(catalogue.faults([kind])).toEqual([]);
    const flow = kind.flows.get('sail');
    const names =
      flow && catalogue.flow(flow).steps.map((step) => (step.kind === 'task' ? step.task.name : step.name));
    expect(names).toEqual(steps);
  });

  it('refuses two insertions of one name, and takes one after the other', () => {
    const kinds = [kindOf('Ship', 'sail')];
    const first = { flow: 'sail', after: 'one', insert };
    expect(new FlowCatalogue([first, first]).faults(kinds)).toEqual([
      'extendFlow: two tasks "audit" are inserted into the flow "sail"',
    ]);
    const second = { flow: 'sail', after: 'audit', insert: { ...insert, name: 'report' } };
    expect(new FlowCatalogue([first, second]).faults(kinds)).toEqual([]);
  });

  it('two tasks of one name, or a colon in a name, cannot be told apart in a status', () => {
    const schema = schemaOf('Ship');
    const tasks = defineTasks(schema, {
      one: { name: 'x', run: async () => undefined },
      two: { name: 'x', run: async () => undefined },
    });
    expect(() => defineKind(schema, { tasks, states: { new: {} } })).toThrow('two tasks have the name "x"');
    const colon = defineTasks(schema, { one: { name: 'x:y', run: async () => undefined } });
    expect(() => defineKind(schema, { tasks: colon, states: { new: {} } })).toThrow('must have no colon');
  });
});
