import { describe, expect, it } from 'vitest';
import { finished, flow, graphFlow, live, parallelFlow } from '../../../test/fixtures/engine-objects.ts';
import type { OperationContext } from '../../taskflow/operation-context.ts';
import { type MarkedTask, markTasks } from './task-marks.ts';

const text = ({ task, mark, members }: MarkedTask): string =>
  `${task} ${mark}${members.length === 0 ? '' : ` [${members.map(text).join(', ')}]`}`;

const CASES: readonly (readonly [what: string, context: OperationContext, marks: readonly string[]])[] = [
  ['a running task', flow(), ['load cargo done', 'cross ocean running', 'unload cargo pending']],
  [
    'a flow that has only been planned',
    flow({ task: '', idx: 0, taskStatus: '', finished: [] }),
    ['load cargo pending', 'cross ocean pending', 'unload cargo pending'],
  ],
  [
    'a failed task after a skipped one',
    flow({ taskStatus: 'failed', finished: [finished('load cargo', { result: 'skipped' })] }),
    ['load cargo skipped', 'cross ocean failed', 'unload cargo pending'],
  ],
  [
    'a flow of ob-operator, which keeps no ended tasks',
    flow({ finished: [], idx: 3, task: 'unload cargo' }),
    ['load cargo done', 'cross ocean done', 'unload cargo running'],
  ],
  [
    'a task that comes twice',
    flow({ tasks: ['check', 'sail', 'check'], task: 'sail', finished: [finished('check')] }),
    ['check done', 'sail running', 'check pending'],
  ],
  [
    'a parallel step, with its members',
    parallelFlow(),
    [
      'weigh anchor done',
      'set sails running [set sail:aft done, set sail:fore running, set sail:main pending]',
      'leave pending',
    ],
  ],
  [
    'a parallel step that is over keeps its members',
    flow({
      tasks: ['set sails', 'leave'],
      task: 'leave',
      finished: [finished('set sail:fore'), finished('set sail:aft', { result: 'failed' })],
    }),
    ['set sails done [set sail:fore done, set sail:aft failed]', 'leave running'],
  ],
  [
    'a parallel step to come, whose members are planned',
    flow({ running: [live('unload:hold', { step: 'unload cargo', taskStatus: '' })] }),
    ['load cargo done', 'cross ocean running', 'unload cargo pending [unload:hold pending]'],
  ],
  [
    'an undoing, without what is undone',
    flow({
      compensating: true,
      tasks: ['bring ship back', 'unload again'],
      task: 'unload again',
      finished: [finished('load cargo'), finished('cross ocean'), finished('bring ship back')],
    }),
    ['bring ship back done', 'unload again running'],
  ],
  ['a graph', graphFlow(), ['north done', 'east running', 'west running', 'south pending']],
  [
    'a graph whose live node comes after one that waits',
    flow({ tasks: ['north', 'east'], task: 'east', idx: 0, running: [live('east')], finished: [] }),
    ['north pending', 'east running'],
  ],
];

describe('marks of tasks', () => {
  it.each(CASES)('%s', (_, context, marks) => {
    expect(markTasks(context).map(text)).toEqual(marks);
  });
});
