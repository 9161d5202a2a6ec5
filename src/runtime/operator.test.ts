import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { recordingLogger } from '../../test/support/recording-logger.ts';
import { type Component, EXIT, type Leadership, type Phase, runOperator } from './operator.ts';

function component(
  name: string,
  phase: Component['phase'],
  story: string[],
  extra: Partial<Component> = {},
): Component {
  return {
    name,
    phase,
    start: async () => void story.push(`start ${name}`),
    stop: async () => void story.push(`stop ${name}`),
    ...extra,
  };
}

function election(story: string[]) {
  const leading = Promise.withResolvers<void>();
  const lost = Promise.withResolvers<Error>();
  const leadership: Leadership = {
    start: () => story.push('campaign'),
    leading: leading.promise,
    lost: lost.promise,
    stop: async () => void story.push('release lease'),
  };
  return { leadership, lead: () => leading.resolve(), lose: () => lost.resolve(new Error('another leads')) };
}

function setUp(extra: Component[] = []) {
  const story: string[] = [];
  const stop = new AbortController();
  const clock = manualClock();
  const reached = new Map<string, PromiseWithResolvers<void>>();
  const phase = (name: string): PromiseWithResolvers<void> => {
    const known = reached.get(name) ?? Promise.withResolvers<void>();
    reached.set(name, known);
    return known;
  };
  const { leadership, lead, lose } = election(story);
  const components = [
    component('controller', 'controllers', story),
    component('webhook', 'webhooks', story),
    component('cache', 'caches', story),
    component('certificate', 'certificates', story),
    ...extra,
  ];
  const exit = runOperator({
    components,
    leadership,
    log: recordingLogger().log,
    stop: stop.signal,
    clock,
    onPhase: (name: Phase | 'running' | 'stopping') => phase(name).resolve(),
  });
  return { story, stop, clock, exit, lead, lose, until: (name: string) => phase(name).promise };
}

const WARM = ['start certificate', 'start cache', 'start webhook', 'campaign'];

describe('the operator process', () => {
  it('starts in order, serves webhooks while it stands by, and stops in reverse', async () => {
    const { story, stop, exit, lead, until } = setUp();
    await until('leader');
    expect(story).toEqual(WARM);
    lead();
    await until('running');
    stop.abort();
    expect(await exit).toBe(EXIT.stopped);
    expect(story).toEqual([
      ...WARM,
      'start controller',
      'stop controller',
      'release lease',
      'stop webhook',
      'stop cache',
      'stop certificate',
    ]);
  });

  it('asked to stop while it stands by, it never starts a controller', async () => {
    const { story, stop, exit, until } = setUp();
    await until('leader');
    stop.abort();
    expect(await exit).toBe(EXIT.stopped);
    expect(story).not.toContain('start controller');
  });

  it('a lost lease ends the process with 1, and nothing is released', async () => {
    const { story, exit, lead, lose, until } = setUp();
    await until('leader');
    lead();
    await until('running');
    lose();
    expect(await exit).toBe(EXIT.failed);
    expect(story).toContain('stop controller');
    expect(story).not.toContain('release lease');
  });

  it('a component that cannot start ends the process with 1 and stops the others', async () => {
    const broken: Component = {
      name: 'broken',
      phase: 'caches',
      start: () => Promise.reject(new Error('no rights')),
      stop: () => Promise.reject(new Error('was never up')),
    };
    const { story, exit } = setUp([broken]);
    expect(await exit).toBe(EXIT.failed);
    expect(story.at(-1)).toBe('stop certificate');
  });

  it('does not wait for ever for a component that does not stop', async () => {
    const stuck: Component = {
      name: 'stuck',
      phase: 'controllers',
      start: async () => {},
      stop: () => new Promise(() => {}),
    };
    const { stop, clock, exit, lead, until } = setUp([stuck]);
    await until('leader');
    lead();
    await until('running');
    stop.abort();
    await until('stopping');
    await clock.advance(25_000);
    expect(await exit).toBe(EXIT.failed);
  });
});
