// placeholder until the virtual node is written: overwrite freely
import type { ClusterRole } from '../../kube/builtin-resources.ts';
export const VIRTUAL_NODE_USER = 'taskflow:virtual-node';
export const VIRTUAL_NODE_RULES: NonNullable<ClusterRole['rules']> = [];
