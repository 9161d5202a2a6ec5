/** The controller of a kind with flows: where its keys come from, and the coordinator that works on them. */
import { nanoid } from 'nanoid';
import type { Clock } from '../kube/clock.ts';
import type { Informer } from '../kube/informer.ts';
import { and, fieldsChanged, notOwn, or, type Predicate } from '../kube/predicates.ts';
import { type KubeObject, objectKey, type ResourceType, type Stored } from '../kube/resource-type.ts';
import type { Source } from '../runtime/controller.ts';
import { forKind, owns as ownsSource, userChanged, watches } from '../runtime/sources.ts';
import { Attempts } from '../taskflow/attempts.ts';
import type { CacheReader } from '../taskflow/cache-reader.ts';
import { Coordinator } from '../taskflow/coordinator.ts';
import { type FlowKind, kindName } from '../taskflow/flow-kind.ts';
import { type Observation, Observations } from '../taskflow/observations.ts';
import { StatusWriter } from '../taskflow/status-writer.ts';
import type { WatchDef } from './define-kind.ts';
import type { Control, ControlContext } from './kind.ts';

const OWNER_INDEX = 'controller-uid';
/** Every object is looked at this often, give or take a tenth, from memory and without a call. */
const TICK_MS = 30_000;

export function flowControl<O extends KubeObject>(
  kind: FlowKind<O>,
  owns: readonly WatchDef[],
  context: ControlContext,
): Control {
  const { client, clock, events, log, config, owner, isLeader, informers, tasks, catalogue, flowMetrics } =
    context;
  const name = kindName(kind);
  const ownType: ResourceType<O> = kind.schema;
  const informer = informers.of(ownType);
  const owned = new Map(owns.map(({ type }) => [type, ownedInformer(informers.of(type))] as const));
  const attempts = new Attempts<O>({ kind, tasks, client, events, log, config, clock, owner, isLeader });
  const { observers } = kind;
  const observations = new Observations<O>({ kind: name, observers, tasks, client, config, log, clock });
  const coordinator = new Coordinator<O>({
    kind,
    catalogue,
    client,
    informer,
    attempts,
    events,
    clock,
    owner,
    writer: new StatusWriter({ client, informer, clock, conflict: () => flowMetrics.conflict(name) }),
    limits: {
      maxRetry: config.time.taskMaxRetryTimes,
      backoffThreshold: config.time.taskRetryBackoffThreshold,
      maxDelayMs: config.time.taskRetryMaxDelaySeconds * 1_000,
    },
    annotationDomain: config.engine.annotationDomain,
    observations,
    cacheFor: (object) => cacheReader(object, owned, observations),
    newId: () => nanoid(),
    random: Math.random,
    observer: flowMetrics.forKind(name),
  });
  flowMetrics.observeObjects(name, () => countStates(kind, informer));
  return {
    reconcile: (key, reconcileContext) => coordinator.reconcile(key, reconcileContext),
    sources: [
      forKind(informer, changedByOthers(kind)),
      (enqueue) => attempts.subscribe((key) => enqueue(key)),
      (enqueue) => observations.subscribe((key) => enqueue(key)),
      tick(informer, clock),
      ...owns.map((watch) =>
        nudging(childSource(watch, informers.of(watch.type), kind.schema), (key) => coordinator.nudge(key)),
      ),
    ],
  };
}

/** What users change, and the flow itself, if somebody else has moved it: a rescue. */
function changedByOthers<O extends KubeObject>({ stateField }: FlowKind<O>): Predicate<O> {
  const flow = fieldsChanged(['status.operationContext', `status.${stateField}`]);
  return and(notOwn, or(userChanged, flow));
}

/** What an object watches changed: its tasks need not wait for their next probe. */
function nudging(source: Source, nudge: (key: string) => void): Source {
  return (enqueue) =>
    source((key, priority) => {
      nudge(key);
      enqueue(key, priority);
    });
}

function childSource(watch: WatchDef, informer: Informer<KubeObject>, owner: ResourceType): Source {
  const predicate = watch.on && fieldsChanged(watch.on);
  return watch.map ? watches(informer, watch.map, predicate) : ownsSource(informer, owner, predicate);
}

/** One timer for all objects of the kind: the net below events. */
function tick<O extends KubeObject>(informer: Informer<O>, clock: Clock): Source {
  return (enqueue) => {
    let cancel = (): void => {};
    const next = (): void => {
      cancel = clock.after(TICK_MS * (0.9 + 0.2 * Math.random()), () => {
        for (const object of informer.values()) enqueue(objectKey(object.metadata), 'background');
        next();
      });
    };
    next();
    return () => cancel();
  };
}

function ownedInformer(informer: Informer<KubeObject>): Informer<KubeObject> {
  informer.addIndexers({
    [OWNER_INDEX]: ({ metadata }) =>
      (metadata.ownerReferences ?? []).filter(({ controller }) => controller).map(({ uid }) => uid),
  });
  return informer;
}

function cacheReader<O extends KubeObject>(
  object: Stored<O>,
  owned: ReadonlyMap<ResourceType, Informer<KubeObject>>,
  observations: Observations<O>,
): CacheReader {
  const informerOf = <T extends KubeObject>(type: ResourceType<T>): Informer<T> => {
    const informer = owned.get(type);
    if (!informer) throw new Error(`${type.kind} is not among the types that the kind declares in "owns"`);
    return informer as unknown as Informer<T>;
  };
  return {
    get: (type, ref) => informerOf(type).get(objectKey(ref)),
    owned: (type) => informerOf(type).byIndex(OWNER_INDEX, object.metadata.uid),
    observed: <T>(observer: string) =>
      observations.get(objectKey(object.metadata), observer) as Observation<T> | undefined,
  };
}

function countStates<O extends KubeObject>(kind: FlowKind<O>, informer: Informer<O>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const object of informer.values()) {
    const status = (object as { status?: Record<string, unknown> }).status ?? {};
    const { [kind.stateField]: value } = status;
    const state = typeof value === 'string' ? value : '';
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return counts;
}
