/**
 * Runs one Pod, from the moment it is bound to the node until it is gone from
 * the API. An actor: everything that happens (a change of the object, an exit,
 * a probe, a timer) only wakes it, and turns never overlap. A turn looks at the
 * newest object and the records, acts, and writes the status once if it
 * differs. What was started is known from memory alone, never from a status
 * that may be old.
 */
import { pods } from '../../kube/builtin-resources.ts';
import { Conflict, Invalid, NotFound } from '../../kube/errors.ts';
import { askedCompletion, askedFailure, FAIL } from './annotations.ts';
import { type ContainerRecord, wait } from './container-record.ts';
import { AwaitsObject, referenceKey, type ReferenceListener } from './object-references.ts';
import { type ContainersContext, PodContainers, type RunLog } from './pod-containers.ts';
import { planPod } from './pod-plan.ts';
import { NoCommand, PodSandbox, type SandboxContext } from './pod-sandbox.ts';
import { isProcessImage, type PodContainer, specOf, type StoredPod } from './pod-spec.ts';
import { isTerminal, type PodFacts, podStatus, statusPatch } from './pod-status.ts';

export interface PodRunnerContext extends SandboxContext, ContainersContext {
  readonly onError: (error: unknown) => void;
}

const DEADLINE_EXCEEDED = {
  reason: 'DeadlineExceeded',
  message: 'Pod was active on the node longer than the specified deadline',
};
const RETRY = { firstMs: 500, maxMs: 30_000 };
const STOP_GRACE_MS = 1_000;
const AWAITED = 'awaited ';
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class PodRunner {
  /** Settles when the Pod is gone from the API and nothing of it is left here. */
  readonly gone: Promise<void>;
  readonly #settleGone: () => void;
  readonly #context: PodRunnerContext;
  readonly #sandbox: PodSandbox;
  readonly #containers: PodContainers;
  readonly #follows = new Map<string, () => void>();
  /** Keys of what this turn found missing. */
  readonly #awaited = new Set<string>();
  #pod: StoredPod;
  #turns: Promise<void> | undefined;
  #wokenAgain = false;
  #timer: NodeJS.Timeout | undefined;
  #wakeAt: number | undefined;
  #failures = 0;
  #startTime: number;
  #loaded = false;
  #initialised = false;
  #volumesAreOld = false;
  #deadlineExceeded = false;
  #deleteSent = false;
  #removed = false;
  #stopped = false;

  constructor(context: PodRunnerContext, pod: StoredPod) {
    this.#context = context;
    this.#pod = pod;
    this.#startTime = pod.status?.startTime === undefined ? Date.now() : Date.parse(pod.status.startTime);
    this.#sandbox = new PodSandbox(context, pod);
    const onChange = (): void => this.#wake();
    this.#containers = new PodContainers(context, this.#sandbox, () => this.#pod, onChange);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.gone = promise;
    this.#settleGone = resolve;
    this.#wake();
  }

  get pod(): StoredPod {
    return this.#pod;
  }

  record(container: string): ContainerRecord | undefined {
    return this.#containers.records.get(container);
  }

  log(container: string, previous: boolean): RunLog | undefined {
    return this.#containers.log(container, previous);
  }

  /** A newer version of the object. */
  update(pod: StoredPod): void {
    this.#adopt(pod);
    this.#wake();
  }

  /** The object is gone from the API: so is the right to run anything for it. */
  remove(): void {
    this.#removed = true;
    void this.#containers.endAll(0);
    this.#wake();
  }

  /** The node stops: processes end, the object stays as it is. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#unfollow();
    await this.#containers.endAll(STOP_GRACE_MS);
    await this.#turns;
    await this.#containers.endAll(0);
  }

  #adopt(pod: StoredPod): void {
    const before = this.#pod;
    if (BigInt(pod.metadata.resourceVersion) < BigInt(before.metadata.resourceVersion)) return;
    this.#pod = pod;
    if (askedFailure(before) !== askedFailure(pod)) this.#failureChanged();
    if (metadataInVolumes(before) !== metadataInVolumes(pod)) this.#volumesAreOld = true;
  }

  /** The annotation takes effect at once, in both directions. */
  #failureChanged(): void {
    for (const record of this.#containers.records.values()) {
      if (record.state.kind !== 'waiting') continue;
      record.notBefore = 0;
      record.endings = 0;
    }
    if (askedFailure(this.#pod) === 'CrashLoopBackOff') this.#containers.crashRunning();
  }

  #wake(): void {
    if (this.#stopped) return;
    this.#wokenAgain = true;
    this.#turns ??= this.#takeTurns();
  }

  async #takeTurns(): Promise<void> {
    // Woken several times in one go, it still takes one turn.
    await Promise.resolve();
    while (this.#wokenAgain && !this.#stopped) {
      this.#wokenAgain = false;
      this.#wakeAt = undefined;
      this.#awaited.clear();
      const failuresBefore = this.#failures;
      try {
        await this.#turn();
        if (this.#failures === failuresBefore) this.#failures = 0;
      } catch (error) {
        if (this.#stopped) break;
        this.#context.onError(error);
        this.#wakeNoLaterThan(this.#retryTime());
      }
      this.#unfollow((key) => key.startsWith(AWAITED) && !this.#awaited.has(key));
      this.#setTimer();
    }
    this.#turns = undefined;
  }

  async #turn(): Promise<void> {
    if (!this.#loaded) await this.#load();
    if (this.#removed) return this.#leave();
    if (this.#isDeleted || this.#isPastDeadline()) this.#containers.end(this.#graceMs());
    else if (!isTerminal(this.#pod.status?.phase)) await this.#advance();
    // Asked before the status is written: only a status that tells of the end may be the last.
    const isOver = this.#isDeleted && this.#containers.nothingRuns;
    await this.#publish();
    if (isOver) await this.#deleteObject();
  }

  async #load(): Promise<void> {
    await this.#containers.load();
    this.#loaded = true;
    if (isTerminal(this.#pod.status?.phase)) return;
    this.#containers.resume();
    this.#initialised = !this.#containers.nothingRuns;
  }

  get #isDeleted(): boolean {
    return this.#pod.metadata.deletionTimestamp !== undefined;
  }

  #isPastDeadline(): boolean {
    const seconds = this.#pod.spec?.activeDeadlineSeconds;
    if (this.#deadlineExceeded || seconds === undefined || isTerminal(this.#pod.status?.phase))
      return this.#deadlineExceeded;
    const deadline = this.#startTime + 1000 * seconds;
    this.#deadlineExceeded = deadline <= Date.now();
    if (!this.#deadlineExceeded) this.#wakeNoLaterThan(deadline);
    return this.#deadlineExceeded;
  }

  #graceMs(): number {
    const { metadata, spec } = this.#pod;
    return 1000 * (metadata.deletionGracePeriodSeconds ?? spec?.terminationGracePeriodSeconds ?? 30);
  }

  /** Starts what is due, until there is nothing more to start. */
  async #advance(): Promise<void> {
    const spec = specOf(this.#pod);
    const completion = askedCompletion(this.#pod);
    if (completion)
      this.#wakeNoLaterThan(this.#containers.finishPretended(completion.afterMs, completion.exitCode));
    for (let progress = true; progress && !this.#isEnding;) {
      const plan = planPod(spec, this.#containers.records, this.#initialised, Date.now());
      this.#wakeNoLaterThan(plan.wakeAt);
      this.#initialised = plan.initialised;
      if (plan.finished) return this.#containers.end(this.#graceMs());
      if (!(await this.#mounted(plan.start))) return;
      progress = false;
      for (const part of plan.start) if (!this.#isEnding && (await this.#start(part))) progress = true;
    }
  }

  get #isEnding(): boolean {
    return this.#isDeleted || this.#removed || this.#stopped;
  }

  /** Volumes are there and up to date; false while something is missing. */
  async #mounted(waiting: readonly PodContainer[]): Promise<boolean> {
    const { volumes } = this.#sandbox;
    const isOld = this.#volumesAreOld || (volumes?.renewAt ?? Infinity) <= Date.now();
    this.#wakeNoLaterThan(volumes?.renewAt);
    if (volumes && !isOld) return true;
    this.#volumesAreOld = false;
    try {
      const { shows, renewAt } = await this.#sandbox.mount(this.#pod);
      this.#wakeNoLaterThan(renewAt);
      for (const { type, ref, resourceVersion } of shows)
        this.#follow(referenceKey(type, ref), type, ref, (version) => {
          if (version === resourceVersion || version === undefined) return;
          this.#volumesAreOld = true;
          this.#wake();
        });
      return true;
    } catch (error) {
      // What was mounted before stays usable while its source is away.
      if (volumes) this.#delayed(error);
      else for (const { container } of waiting) this.#cannotStart(container.name, 'ContainerCreating', error);
      return volumes !== undefined;
    }
  }

  /** True if something was begun, so that the plan may have changed. */
  async #start(part: PodContainer): Promise<boolean> {
    const { container } = part;
    const failure = askedFailure(this.#pod);
    if (failure === 'CrashLoopBackOff') {
      await this.#containers.crash(part);
      return true;
    }
    if (failure !== undefined) {
      wait(this.#containers.record(container.name), failure, `asked for by the annotation ${FAIL}`);
      return false;
    }
    if (!isProcessImage(container.image)) {
      await this.#containers.pretend(part);
      return true;
    }
    try {
      const launch = await this.#sandbox.launch(this.#pod, container);
      if (this.#isEnding) return false;
      await this.#containers.run(part, launch);
      return true;
    } catch (error) {
      const reason = error instanceof NoCommand ? 'CreateContainerError' : 'CreateContainerConfigError';
      this.#cannotStart(container.name, reason, error);
      return false;
    }
  }

  #cannotStart(name: string, reason: string, error: unknown): void {
    if (this.#stopped) return;
    wait(this.#containers.record(name), reason, error instanceof Error ? error.message : String(error));
    if (!(error instanceof NoCommand)) this.#delayed(error);
  }

  /** Tries again when the missing object appears or changes; after a while if something else is wrong. */
  #delayed(error: unknown): void {
    if (!(error instanceof AwaitsObject)) return this.#wakeNoLaterThan(this.#retryTime());
    const { type, ref } = error;
    const key = AWAITED + referenceKey(type, ref);
    this.#awaited.add(key);
    if (!this.#follows.has(key)) this.#follow(key, type, ref, () => this.#wake());
  }

  #follow(
    key: string,
    type: AwaitsObject['type'],
    ref: AwaitsObject['ref'],
    listener: ReferenceListener,
  ): void {
    if (this.#stopped || this.#removed) return;
    const unfollowOld = this.#follows.get(key);
    this.#follows.set(key, this.#context.references.follow(type, ref, listener));
    unfollowOld?.();
  }

  async #publish(): Promise<void> {
    if (this.#stopped || isTerminal(this.#pod.status?.phase)) return;
    const patch = statusPatch(this.#pod, podStatus(this.#facts()));
    if (!patch) return;
    try {
      const { client, signal } = this.#context;
      const options = { subresource: 'status', signal };
      this.#adopt(await client.patch(pods, this.#pod.metadata, { kind: 'strategic', body: patch }, options));
    } catch (error) {
      // Gone, or replaced by another Pod of the same name: the watch will say so.
      if (!(error instanceof NotFound || isOtherUid(error))) throw error;
    }
    if (!isTerminal(this.#pod.status?.phase)) return;
    this.#unfollow();
    await this.#sandbox.clear();
  }

  #facts(): PodFacts {
    const ended = this.#containers.nothingRuns && (this.#isDeleted || this.#deadlineExceeded);
    return {
      pod: this.#pod,
      records: this.#containers.records,
      now: Date.now(),
      startTime: this.#startTime,
      hostIP: this.#sandbox.hostIP,
      podIP: this.#sandbox.volumes || this.#pod.status?.podIP !== undefined ? this.#sandbox.podIP : undefined,
      ended: ended ? (this.#deadlineExceeded ? DEADLINE_EXCEEDED : {}) : undefined,
    };
  }

  async #deleteObject(): Promise<void> {
    if (this.#deleteSent) return;
    const { client, signal } = this.#context;
    const { uid } = this.#pod.metadata;
    try {
      await client.delete(pods, this.#pod.metadata, {
        gracePeriodSeconds: 0,
        preconditions: { uid },
        signal,
      });
    } catch (error) {
      if (!(error instanceof NotFound || error instanceof Conflict)) throw error;
    }
    this.#deleteSent = true;
  }

  async #leave(): Promise<void> {
    this.#unfollow();
    await this.#containers.endAll(0);
    await this.#sandbox.destroy();
    this.#settleGone();
  }

  #unfollow(which: (key: string) => boolean = () => true): void {
    for (const [key, unfollow] of this.#follows) {
      if (!which(key)) continue;
      this.#follows.delete(key);
      unfollow();
    }
  }

  #retryTime(): number {
    return Date.now() + Math.min(RETRY.maxMs, RETRY.firstMs * 2 ** this.#failures++);
  }

  #wakeNoLaterThan(time: number | undefined): void {
    if (time !== undefined) this.#wakeAt = Math.min(this.#wakeAt ?? Infinity, time);
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    if (this.#wakeAt === undefined || this.#stopped) return;
    const delay = Math.min(LONGEST_TIMER_MS, Math.max(0, this.#wakeAt - Date.now()));
    this.#timer = setTimeout(() => this.#wake(), delay);
  }
}

/** The patch names a uid that the stored object does not have. */
function isOtherUid(error: unknown): boolean {
  return error instanceof Invalid && error.causes.some(({ field }) => field === 'metadata.uid');
}

/** What of the metadata the Pod's own volumes may show. */
function metadataInVolumes({ metadata, spec }: StoredPod): string {
  const shown = (spec?.volumes ?? []).some(
    ({ downwardAPI, projected }) => downwardAPI ?? projected?.sources?.some((source) => source.downwardAPI),
  );
  return shown ? JSON.stringify([metadata.labels, metadata.annotations]) : '';
}
