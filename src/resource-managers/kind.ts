/**
 * What the operator needs to know of a kind: its schema, the rights its work
 * takes, its admission rules, and how it is reconciled. The engine makes these
 * from task flows; a plugin may also write one by hand.
 */
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { KindSchema } from '../kube/schema/define-schema.ts';
import type { RbacRule } from '../kube/schema/rbac.ts';
import type { Reconcile, Source } from '../runtime/controller.ts';
import type { Config } from '../runtime/config/schema.ts';
import type { Informers } from '../runtime/informers.ts';
import type { Logger } from '../runtime/logging.ts';
import type { TaskManager } from '../task-manager/task-manager.ts';
import type { FlowCatalogue, FlowExtension } from '../taskflow/flow-catalogue.ts';
import type { FlowKind } from '../taskflow/flow-kind.ts';
import type { FlowMetrics } from '../taskflow/flow-metrics.ts';
import type { WebhookKind } from '../webhooks/rules.ts';

export interface OperatorKind {
  readonly schema: KindSchema;
  /** Beyond the objects of the kind themselves, which every controller may read and write. */
  readonly rbac: readonly RbacRule[];
  readonly webhook?: WebhookKind['rules'];
  /** Absent where another kind's controller does the work. */
  readonly control?: (context: ControlContext) => Control;
  /** Of a kind that `defineKind` has made. */
  readonly flowKind?: FlowKind<never>;
}

export interface Control {
  readonly reconcile: Reconcile;
  readonly sources: readonly Source[];
}

/** What a controller works with. */
export interface ControlContext {
  readonly client: KubeClient;
  readonly informers: Pick<Informers, 'of'>;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly config: Config;
  readonly clock: Clock;
  readonly tasks: TaskManager;
  readonly catalogue: FlowCatalogue;
  readonly flowMetrics: FlowMetrics;
  /** Identity and term of this leader, for fencing. */
  readonly owner: () => { readonly holder: string; readonly epoch: number };
  /** False as soon as the lease may be another's, even if nobody has told us yet. */
  readonly isLeader: () => boolean;
}

/** Kinds that are switched on together. */
export interface System {
  readonly name: string;
  readonly kinds: readonly OperatorKind[];
  /** Tasks that it inserts into flows, of its own kinds or of others. */
  readonly extensions?: readonly FlowExtension[];
}
