/** The operator's answer to a command: an Event of the object. */
import { type Event, events } from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { ApiError } from '../../kube/errors.ts';
import { Reflector } from '../../kube/reflector.ts';
import type { Stored } from '../../kube/resource-type.ts';
import type { EngineObject } from '../inspect/engine-object.ts';

export interface Answer {
  readonly accepted: boolean;
  readonly message: string;
}

/** Events that were there before, each in the version it had: clocks of two machines are not to be compared. */
export type SeenEvents = ReadonlySet<string>;

const ACCEPTED_BY_REASON: Readonly<Record<string, boolean>> = {
  CommandAccepted: true,
  CommandRefused: false,
};

/** Undefined where the user may not see events. */
export async function eventsBefore(
  client: KubeClient,
  object: EngineObject,
): Promise<SeenEvents | undefined> {
  try {
    const seen = new Set<string>();
    for await (const event of client.listAll(events, selectionOf(object))) seen.add(versionOf(event));
    return seen;
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/** Undefined if none comes in time: events may get lost. */
export async function newAnswer(
  client: KubeClient,
  object: EngineObject,
  seen: SeenEvents,
  timeoutMs: number,
): Promise<Answer | undefined> {
  const { promise, resolve } = Promise.withResolvers<Answer | undefined>();
  const reflector = new Reflector({
    client,
    type: events,
    ...selectionOf(object),
    onChange: ({ type, object: event }) => {
      const answer = type === 'deleted' || seen.has(versionOf(event)) ? undefined : answerOf(event);
      if (answer) resolve(answer);
    },
  }).start();
  const callOff = systemClock.after(timeoutMs, () => resolve(undefined));
  try {
    return await promise;
  } finally {
    callOff();
    await reflector.stop();
  }
}

export function answerOf({ reason = '', message = '' }: Event): Answer | undefined {
  const accepted = ACCEPTED_BY_REASON[reason];
  return accepted === undefined ? undefined : { accepted, message };
}

/** Events of cluster-wide objects are in the namespace `default`. */
function selectionOf({ metadata }: EngineObject) {
  return { namespace: metadata.namespace ?? 'default', fieldSelector: `involvedObject.uid=${metadata.uid}` };
}

function versionOf({ metadata }: Stored<Event>): string {
  return `${metadata.name} ${metadata.resourceVersion}`;
}
