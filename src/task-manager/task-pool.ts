/**
 * Places to run in. Each class of tasks has a queue with places of its own, so
 * that many slow tasks of one class keep no other waiting; the size of the pool
 * limits all classes together. Within a class priority decides; when the whole
 * pool is full, the classes take turns at the places that come free.
 */
import PQueue from 'p-queue';
import { POOL_CLASSES, type PoolClass } from './task-manager.ts';

const DEFAULT_CONCURRENCY: Readonly<Record<PoolClass, number>> = {
  default: 200,
  sql: 64,
  job: 16,
  observe: 32,
};

/** Called when there is a place, which is kept until `leave`. */
type Begin = (leave: () => void) => void;

interface Ticket {
  /** Undefined once withdrawn: the queue holds on to the ticket, but to nothing of the task. */
  begin: Begin | undefined;
}

export interface TaskPoolOptions {
  readonly size: number;
  readonly concurrency?: Partial<Record<PoolClass, number>> | undefined;
}

export class TaskPool {
  readonly #size: number;
  readonly #queues: Readonly<Record<PoolClass, PQueue>>;
  #taken = 0;
  /** The class that is asked first for the next free place. */
  #turn = 0;

  constructor({ size, concurrency = {} }: TaskPoolOptions) {
    if (!(size >= 1)) throw new Error(`The task pool needs at least one place, not ${size}: set poolSize.`);
    const queueOf = (poolClass: PoolClass): PQueue =>
      new PQueue({ concurrency: concurrency[poolClass] ?? DEFAULT_CONCURRENCY[poolClass] });
    this.#size = size;
    this.#queues = {
      default: queueOf('default'),
      sql: queueOf('sql'),
      job: queueOf('job'),
      observe: queueOf('observe'),
    };
  }

  /** Queues up for a place; the function it returns steps out of the queue. */
  enter(poolClass: PoolClass, priority: number, begin: Begin): () => void {
    const ticket: Ticket = { begin };
    void this.#queues[poolClass].add(() => this.#hold(ticket), { priority });
    return () => {
      ticket.begin = undefined;
    };
  }

  /** The queue counts its place as taken until this resolves. */
  async #hold(ticket: Ticket): Promise<void> {
    if (!ticket.begin) return;
    this.#take();
    // The queue may call this inside of enter(): nobody expects a task to run before enter() returns.
    await Promise.resolve();
    await new Promise<void>((leave) => {
      if (ticket.begin) ticket.begin(leave);
      else leave();
    });
    this.#giveBack();
  }

  #take(): void {
    this.#taken++;
    if (this.#taken < this.#size) return;
    for (const poolClass of POOL_CLASSES) this.#queues[poolClass].pause();
  }

  #giveBack(): void {
    this.#taken--;
    if (this.#taken !== this.#size - 1) return;
    const first = this.#turn;
    this.#turn = (first + 1) % POOL_CLASSES.length;
    for (const poolClass of [...POOL_CLASSES.slice(first), ...POOL_CLASSES.slice(0, first)]) {
      // A queue that starts may fill the pool again, which pauses all of them.
      if (this.#taken < this.#size) this.#queues[poolClass].start();
    }
  }
}
