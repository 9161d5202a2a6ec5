/** What our figures stand beside: status PATCHes by bare undici. */
import { Agent } from 'undici';
import type { ConnectionOptions } from '../../src/kube/connection.ts';
import { resourcePath, type ResourceType } from '../../src/kube/resource-type.ts';

export type PatchStatus = (name: string, status: object) => Promise<unknown>;

export interface BarePatch extends AsyncDisposable {
  readonly patch: PatchStatus;
}

/** The least that a status PATCH takes: no deadline, no retry, no error classes. */
export function barePatch(connection: ConnectionOptions, type: ResourceType, namespace: string): BarePatch {
  const { server, ca, clientCertificate, token } = connection;
  const keys = clientCertificate && { cert: clientCertificate.certPem, key: clientCertificate.keyPem };
  const agent = new Agent({ connect: { ca, ...keys }, allowH2: false });
  const headers = {
    accept: 'application/json',
    'content-type': 'application/merge-patch+json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  return {
    async patch(name, status) {
      const { body } = await agent.request({
        origin: server,
        path: `${resourcePath(type, { namespace, name, subresource: 'status' })}?fieldManager=bench`,
        method: 'PATCH',
        headers,
        body: JSON.stringify({ status }),
      });
      return body.json();
    },
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

export async function inParallel(
  count: number,
  inFlight: number,
  work: (at: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}
