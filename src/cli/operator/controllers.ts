/** The controllers of all kinds as one component: only the leader has them. */
import type { System, ControlContext } from '../../resource-managers/kind.ts';
import { Controller } from '../../runtime/controller.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Component } from '../../runtime/operator.ts';

export interface ControllersOptions {
  readonly systems: readonly System[];
  readonly context: ControlContext;
  readonly metrics: Metrics;
}

export class Controllers implements Component {
  readonly name = 'controllers';
  readonly phase = 'controllers';
  readonly #controllers: readonly Controller[];

  /** Built before the caches start, so that every informer it needs is known by then. */
  constructor({ systems, context, metrics }: ControllersOptions) {
    const { maxConcurrentReconciles, reconcileTimeout } = context.config.controller;
    this.#controllers = systems.flatMap(({ kinds }) =>
      kinds.flatMap(({ schema, control }) => {
        if (!control) return [];
        const name = schema.kind.toLowerCase();
        const { reconcile, sources } = control({ ...context, log: context.log.child({ kind: schema.kind }) });
        const controller = new Controller({
          name,
          reconcile,
          log: context.log,
          metrics: metrics.forController(name),
          workers: maxConcurrentReconciles,
          timeoutMs: reconcileTimeout,
          clock: context.clock,
        });
        for (const source of sources) controller.source(source);
        return [controller];
      }),
    );
  }

  async start(): Promise<void> {
    for (const controller of this.#controllers) controller.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#controllers.map((controller) => controller.stop()));
  }

  /** For `/debug/queues`. */
  queues(): Record<string, unknown> {
    return Object.fromEntries(this.#controllers.map(({ name, queue }) => [name, queue.snapshot()]));
  }
}
