/** Objects as a table, a row each. */
import { cut } from './cut.ts';
import { ageText } from './duration-text.ts';
import { type EngineObject, nameText, stateText } from './engine-object.ts';
import { progressText, stepText, taskText, troubleText } from './flow-summary.ts';

export interface TableView {
  readonly now: number;
  /** Nothing is cut. */
  readonly wide: boolean;
  readonly withNamespace: boolean;
}

interface Column {
  readonly title: string;
  readonly cell: (object: EngineObject, view: TableView) => string;
  readonly shown?: (view: TableView) => boolean;
}

const LONGEST_TROUBLE = 60;

const COLUMNS: readonly Column[] = [
  {
    title: 'NAMESPACE',
    cell: ({ metadata }) => metadata.namespace ?? '',
    shown: ({ withNamespace }) => withNamespace,
  },
  { title: 'KIND/NAME', cell: nameText },
  { title: 'STATE', cell: stateText },
  { title: 'FLOW', cell: (object) => flowOf(object)?.name ?? '' },
  { title: 'TASK', cell: ofFlow(taskText) },
  { title: 'STEP', cell: ofFlow(stepText) },
  { title: 'ATTEMPT', cell: (object) => String(flowOf(object)?.attempt ?? '') },
  { title: 'PROGRESS', cell: (object, view) => ofFlow((flow) => progressText(flow, view))(object) },
  { title: 'AGE', cell: (object, { now }) => ofFlow((flow) => ageText(flow.taskStartedAt, now))(object) },
  {
    title: 'LAST ERROR / WAITING FOR',
    cell: (object, { now, wide }) => {
      const text = troubleText(object, now).replaceAll(/\s+/g, ' ').trim();
      return wide ? text : cut(text, LONGEST_TROUBLE);
    },
  },
];

/** Rows with the titles first; an empty cell is a dash, so that columns can be told apart by scripts, too. */
export function statusRows(objects: readonly EngineObject[], view: TableView): string[][] {
  const columns = COLUMNS.filter(({ shown }) => shown?.(view) ?? true);
  return [
    columns.map(({ title }) => title),
    ...objects.map((object) => columns.map(({ cell }) => cell(object, view) || '-')),
  ];
}

function flowOf({ status }: EngineObject) {
  return status?.operationContext;
}

function ofFlow(text: (flow: NonNullable<ReturnType<typeof flowOf>>) => string) {
  return (object: EngineObject): string => {
    const flow = flowOf(object);
    return flow ? text(flow) : '';
  };
}
