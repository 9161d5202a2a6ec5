/** A program that starts a control plane and waits to be killed. Prints the cluster's kubeconfig when ready. */
import { startControlPlane } from '../../src/local-cluster/control-plane.ts';

const plane = await startControlPlane({ dir: process.argv[2] ?? '', durable: false, ephemeral: true });
process.stdout.write(`ready ${plane.clusters[0].kubeconfig}\n`);
setInterval(() => {}, 60_000);
