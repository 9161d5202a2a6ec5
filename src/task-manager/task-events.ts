/** Tells listeners what happened to a task. One that throws disturbs neither the others nor the task. */
import type { TaskListener } from './task-manager.ts';

export type TaskEvent = 'settled' | 'heartbeat';

export class TaskEvents {
  /** Lists are replaced, not changed: who starts to listen while others hear is not among them. */
  readonly #listeners: Record<TaskEvent, readonly { readonly listener: TaskListener }[]> = {
    settled: [],
    heartbeat: [],
  };

  on(event: TaskEvent, listener: TaskListener): () => void {
    // The same function may listen twice.
    const entry = { listener };
    this.#listeners[event] = [...this.#listeners[event], entry];
    return () => {
      this.#listeners[event] = this.#listeners[event].filter((other) => other !== entry);
    };
  }

  emit(
    event: TaskEvent,
    { kind, key, taskId }: { readonly kind: string; readonly key: string; readonly taskId: string },
    onThrown: (thrown: unknown) => void,
  ): void {
    for (const { listener } of this.#listeners[event]) {
      try {
        listener(kind, key, taskId);
      } catch (thrown) {
        onThrown(thrown);
      }
    }
  }
}
