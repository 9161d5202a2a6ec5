/** One change of one object as one line, for logs and pipes. */
import { type EngineObject, nameText, stateText } from './engine-object.ts';
import { progressText, stepText, taskText, troubleText } from './flow-summary.ts';

export interface LineView {
  readonly withNamespace: boolean;
}

/** Nothing in it depends on the time: two lines differ only if the object does. */
export function changeLine(object: EngineObject, { withNamespace }: LineView): string {
  const flow = object.status?.operationContext;
  const parts = [
    withNamespace ? `${object.metadata.namespace ?? ''} ${nameText(object)}`.trim() : nameText(object),
    stateText(object),
    ...(flow
      ? [
          flow.name,
          `${stepText(flow)} ${taskText(flow)}`,
          flow.taskStatus,
          (flow.attempt ?? 1) > 1 ? `attempt ${flow.attempt}` : '',
          progressText(flow, { wide: true }),
        ]
      : []),
    troubleText(object).replaceAll(/\s+/g, ' '),
  ];
  return parts.filter((part) => part !== '').join('  ');
}
