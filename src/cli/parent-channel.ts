/** What a process in the background tells the one that started it. */
export type MessageToParent =
  { readonly type: 'ready' } | { readonly type: 'failed'; readonly message: string };

export function tellParent(message: MessageToParent): void {
  process.send?.(message);
  if (message.type === 'ready' && process.connected) process.disconnect();
}
