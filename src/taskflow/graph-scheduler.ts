/** The scheduler of a graph whose kind brings none: a node starts when all that it needs has succeeded. */
import type { GraphScheduler, NodeShape, NodeState } from './flow-definition.ts';

export function scheduleByNeeds(maxParallel = Infinity): GraphScheduler {
  return (nodes, states, canceled) => {
    const stateOf = (id: string): NodeState => states[id] ?? 'waiting';
    const live = nodes.filter(({ id }) => stateOf(id) === 'live').length;
    const waiting = nodes.filter(({ id }) => stateOf(id) === 'waiting');
    if (canceled) return { start: [], skip: waiting.map(({ id }) => id), abort: true, done: 'failed' };
    const lost = hopeless(waiting, stateOf);
    const ready = waiting.filter(({ needs = [] }) => needs.every((id) => stateOf(id) === 'successful'));
    const start = ready.slice(0, Math.max(0, maxParallel - live)).map(({ id }) => id);
    if (start.length > 0 || live > 0 || waiting.length > lost.length) return { start, skip: lost };
    const failed = nodes.some(({ id }) => stateOf(id) === 'failed') || lost.length > 0;
    return { start, skip: lost, done: failed ? 'failed' : 'successful' };
  };
}

/** Nodes that need, at whatever distance, one that did not succeed. */
function hopeless(waiting: readonly NodeShape[], stateOf: (id: string) => NodeState): string[] {
  const lost = new Set<string>();
  const isLost = (id: string): boolean =>
    lost.has(id) || ['failed', 'skipped', 'canceled'].includes(stateOf(id));
  for (let grew = true; grew;) {
    grew = false;
    for (const { id, needs = [] } of waiting) {
      if (lost.has(id) || !needs.some(isLost)) continue;
      lost.add(id);
      grew = true;
    }
  }
  return [...lost];
}

/** Node ids so that each comes after what it needs; throws where that cannot be. */
export function topologicalOrder(nodes: readonly NodeShape[]): string[] {
  const known = new Set(nodes.map(({ id }) => id));
  const order: string[] = [];
  const placed = new Set<string>();
  if (known.size < nodes.length) throw new Error('two nodes of the graph have the same id');
  for (const { id, needs = [] } of nodes)
    for (const need of needs)
      if (!known.has(need)) throw new Error(`node "${id}" needs "${need}", which is not in the graph`);
  while (order.length < nodes.length) {
    const next = nodes.filter(
      ({ id, needs = [] }) => !placed.has(id) && needs.every((need) => placed.has(need)),
    );
    if (next.length === 0) {
      const left = nodes.filter(({ id }) => !placed.has(id)).map(({ id }) => id);
      throw new Error(`the nodes ${left.join(', ')} need each other in a circle`);
    }
    for (const { id } of next) {
      placed.add(id);
      order.push(id);
    }
  }
  return order;
}
