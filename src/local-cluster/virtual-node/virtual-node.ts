// placeholder until the virtual node is written: overwrite freely
export interface VirtualNode {
  readonly name: string;
  readonly kubeletPort: number;
  stop(): Promise<void>;
}
export async function startVirtualNode(_options: unknown): Promise<VirtualNode> {
  throw new Error('not yet');
}
