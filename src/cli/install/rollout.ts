/** Waiting for the operator to run, and telling why it does not. */
import type * as k8s from '@kubernetes/client-node';
import { awaitObject } from '../../kube/await-object.ts';
import { type Pod, pods } from '../../kube/builtin-resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Json, ObjectRef } from '../../kube/resource-type.ts';
import { messageOf } from '../../kube/thrown.ts';
import { UserError } from '../user-error.ts';
import { selectorOf } from './names.ts';
import { deployments } from './object-types.ts';

export async function awaitRollout(
  client: KubeClient,
  ref: ObjectRef,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal },
): Promise<void> {
  try {
    await awaitObject(client, deployments, ref, isRolledOut, {
      timeoutMs,
      until: 'to have all its Pods available',
      ...(signal && { signal }),
    });
  } catch (error) {
    const troubles = await podTroubles(client, ref);
    throw new UserError([messageOf(error), ...troubles.map((trouble) => `  ${trouble}`)].join('\n'));
  }
}

/** As `kubectl rollout status` judges. */
function isRolledOut({ metadata, spec, status }: Json<k8s.V1Deployment>): boolean {
  const wanted = spec?.replicas ?? 1;
  return (
    (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0) &&
    (status?.updatedReplicas ?? 0) === wanted &&
    (status?.replicas ?? 0) === wanted &&
    (status?.availableReplicas ?? 0) === wanted
  );
}

async function podTroubles(client: KubeClient, { name, namespace }: ObjectRef): Promise<string[]> {
  const { items } = await client.list(pods, { namespace, labelSelector: selectorOf(name) });
  if (items.length === 0) return ['there are no Pods: see the events of its ReplicaSet'];
  return items.filter((pod) => !isReady(pod)).map((pod) => `pod/${pod.metadata.name}: ${troubleOf(pod)}`);
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}

function troubleOf({ status }: Pod): string {
  const container = status?.containerStatuses?.[0];
  const state = container?.state?.waiting ?? container?.state?.terminated ?? container?.lastState?.terminated;
  const unmet = status?.conditions?.find(({ status: is }) => is === 'False');
  const reason = state?.reason ?? unmet?.reason ?? status?.phase ?? 'unknown';
  const message = state?.message ?? unmet?.message;
  return message === undefined ? reason : `${reason}: ${message}`;
}
