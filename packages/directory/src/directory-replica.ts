import type { RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import type { Bus, Subjects, Subscription } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import { decodeBody, encodeBody } from '@patchbay/service-api';
import type { BeatBatch, RegistryClient, ReplicaAck } from '@patchbay/service-api';
import type { Logger } from '@patchbay/telemetry';
import type { Directory } from './directory.js';
import type { Membership } from './membership.js';
import { PendingEvents } from './pending-events.js';

/** An event that came out of order may only be late. */
const GAP_PATIENCE_MS = 50;
const REFRESH_INTERVAL_MS = 30_000;
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;
const LOG_EVERY_MS = 30_000;
/** A catch-up that brings nothing for so long is given up and started again. */
const CHUNK_PATIENCE_MS = 10_000;
const CATCH_UP_TIMEOUT_MS = 300_000;

/** What {@link DirectoryReplica} needs. */
export interface DirectoryReplicaOptions {
  readonly bus: Bus;
  readonly subjects: Subjects;
  readonly directory: Directory;
  readonly registry: RegistryClient;
  readonly nodeId: string;
  readonly logger: Logger;
  /** Whose beats tell of higher revisions. Absent: they are not listened to. */
  readonly membership?: Membership;
}

/**
 * Keeps a directory equal to the registry: applies events in the order of their revisions, waits 50 ms for one that
 * is late, and fetches what is missing on a gap, on a reconnect, every 30 s, and when somebody knows of a higher
 * revision. Acknowledges what it applied, once per turn of the event loop.
 */
export class DirectoryReplica {
  readonly #options: DirectoryReplicaOptions;
  readonly #pending = new PendingEvents();
  readonly #stopping = new AbortController();
  readonly #subscriptions: Subscription[] = [];
  readonly #endings: (() => void)[] = [];
  readonly #waiting = new Set<() => void>();
  #isLoaded = false;
  #knownHead = 0;
  #isAckDue = false;
  #gapTimer: NodeJS.Timeout | undefined;
  /** The catch-up that runs, and whether another is wanted after it. */
  #running: Promise<void> | undefined;
  #isAgainWanted = false;
  /** Ends the pause between two attempts. */
  #wake = (): void => {};

  constructor(options: DirectoryReplicaOptions) {
    this.#options = options;
  }

  /** Whether the directory holds everything that this node knows to exist. False until the first load. */
  get isCaughtUp(): boolean {
    return this.#isLoaded && this.#options.directory.revision >= this.#knownHead;
  }

  /** Subscribes, and loads the directory; retries until the registry answers. Call once. */
  start(): void {
    const { bus, subjects, nodeId, directory, membership } = this.#options;
    this.#subscriptions.push(
      bus.subscribe(subjects.replication, (delivery) => this.#receive(decodeBody<RegistryEvent[]>(delivery.body))),
      bus.subscribe(subjects.beats('*'), (delivery) => {
        const batch = decodeBody<BeatBatch>(delivery.body);
        if (batch.nodeId === nodeId) return; // applied when they were answered
        for (const beat of batch.beats) directory.touch(beat.agentId, beat.lastSeenMs);
      }),
    );
    const refresh = setInterval(() => this.#catchUp(), REFRESH_INTERVAL_MS).unref();
    this.#endings.push(
      () => clearInterval(refresh),
      bus.onStatus((isUp) => {
        if (!isUp) return;
        this.#wake();
        this.#catchUp();
      }),
    );
    if (membership !== undefined) {
      this.#endings.push(membership.onBeat((beat) => this.noticeHead(beat.applied_revision)));
    }
    this.#catchUp();
  }

  /**
   * Resolves when the directory was loaded for the first time.
   * @throws PatchbayError `deadline_exceeded` after `withinMs`; loading goes on. `cancelled` when stopped.
   */
  async ready(withinMs: number): Promise<void> {
    if (this.#isLoaded) return;
    await new Promise<void>((resolve, reject) => {
      const finish = (error?: PatchbayError): void => {
        clearTimeout(timer);
        this.#waiting.delete(finish);
        if (error === undefined) resolve();
        else reject(error);
      };
      const timer = setTimeout(() => {
        finish(new PatchbayError('deadline_exceeded', `the registry could not be read within ${withinMs} ms`));
      }, withinMs);
      this.#waiting.add(() => finish(this.#stopError()));
    });
  }

  /** Hands over events that this node has just committed, without the way over the bus. */
  applyLocally(events: readonly RegistryEvent[]): void {
    this.#receive(events);
  }

  /** Notes that the registry has reached `revision`; what is missing is fetched when it does not come by itself. */
  noticeHead(revision: number): void {
    this.#knownHead = Math.max(this.#knownHead, revision);
    this.#watchForGap();
  }

  /** Ends following. The directory stays as it is. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#gapTimer);
    for (const end of this.#endings.splice(0)) end();
    for (const tell of this.#waiting) tell();
    await Promise.all(this.#subscriptions.splice(0).map((subscription) => subscription.drain(0)));
    await this.#running;
  }

  #receive(events: readonly RegistryEvent[]): void {
    for (const event of events) {
      this.#knownHead = Math.max(this.#knownHead, event.revision);
      this.#pending.add(event, this.#options.directory.revision);
    }
    // Before the first load there is nothing to apply to: a directory at revision 0 would replay history.
    if (this.#isLoaded) this.#applyPending();
    this.#watchForGap();
  }

  #applyPending(): void {
    const { directory } = this.#options;
    const before = directory.revision;
    for (let next = this.#pending.take(before); next !== undefined; next = this.#pending.take(directory.revision)) {
      directory.apply(next);
    }
    if (directory.revision !== before) this.#acknowledge();
  }

  #watchForGap(): void {
    if (this.#gapTimer !== undefined || this.isCaughtUp || !this.#isLoaded || this.#stopping.signal.aborted) return;
    this.#gapTimer = setTimeout(() => {
      this.#gapTimer = undefined;
      if (!this.isCaughtUp) this.#catchUp();
    }, GAP_PATIENCE_MS).unref();
  }

  #catchUp(): void {
    if (this.#stopping.signal.aborted) return;
    if (this.#running !== undefined) {
      this.#isAgainWanted = true;
      return;
    }
    this.#running = this.#fetchUntilDone().finally(() => {
      this.#running = undefined;
      if (!this.#isAgainWanted) return;
      this.#isAgainWanted = false;
      this.#catchUp();
    });
  }

  async #fetchUntilDone(): Promise<void> {
    const { logger, directory } = this.#options;
    let waitMs = FIRST_RETRY_MS;
    let loggedAtMs = -Infinity;
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#fetch();
        if (loggedAtMs > -Infinity) logger.info({ revision: directory.revision }, 'the directory follows again');
        return;
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        if (performance.now() - loggedAtMs >= LOG_EVERY_MS) {
          loggedAtMs = performance.now();
          logger.warn(
            { err: error, revision: directory.revision, is_loaded: this.#isLoaded },
            'the directory cannot reach the registry; it goes on trying',
          );
        }
        await this.#pause(waitMs * (0.75 + Math.random() / 2));
        waitMs = Math.min(waitMs * 2, LAST_RETRY_MS);
      }
    }
  }

  /** One catch-up: events after what is applied, or a snapshot. */
  async #fetch(): Promise<void> {
    const { registry, directory } = this.#options;
    const since = this.#isLoaded ? directory.revision : 0;
    const believedHead = this.#knownHead;
    const leaving = new AbortController();
    const leave = (): void => leaving.abort();
    const watchdog = setTimeout(leave, CHUNK_PATIENCE_MS).unref();
    this.#stopping.signal.addEventListener('abort', leave);
    const { signal } = leaving;
    let snapshot: { readonly revision: number; readonly agents: RegisteredAgent[] } | undefined;
    let head: number | undefined;
    try {
      for await (const chunk of registry.changes(since, { timeoutMs: CATCH_UP_TIMEOUT_MS, signal })) {
        watchdog.refresh();
        switch (chunk.kind) {
          case 'snapshot':
            snapshot = { revision: chunk.revision, agents: [] };
            break;
          case 'agents':
            for (const agent of chunk.agents) snapshot?.agents.push(agent);
            break;
          case 'events':
            this.#receive(chunk.events);
            break;
          case 'head':
            head = chunk.revision;
            break;
        }
      }
    } finally {
      clearTimeout(watchdog);
      this.#stopping.signal.removeEventListener('abort', leave);
    }
    if (head === undefined) throw new PatchbayError('stream_broken', 'the registry ended a catch-up before its head');
    if (snapshot !== undefined) this.#load(snapshot.agents, snapshot.revision, since);
    this.#finishLoad();
    // Whoever spoke of a higher revision before was wrong (of a database that was replaced, perhaps).
    if (this.#knownHead === believedHead) this.#knownHead = directory.revision;
    this.noticeHead(head);
  }

  #load(agents: readonly RegisteredAgent[], revision: number, since: number): void {
    const { directory, logger } = this.#options;
    // Events may have overtaken the snapshot. A head behind what we asked for is another history: the database was
    // replaced, and what it says holds.
    const isHistoryReplaced = revision < since;
    if (!isHistoryReplaced && this.#isLoaded && revision <= directory.revision) return;
    if (isHistoryReplaced) {
      logger.warn({ revision, applied_revision: directory.revision }, 'the registry went back; taking its state');
      this.#knownHead = revision;
      this.#pending.clear();
    }
    directory.replaceAll(agents, revision);
    this.#acknowledge();
  }

  #finishLoad(): void {
    const { logger, directory } = this.#options;
    const isFirst = !this.#isLoaded;
    this.#isLoaded = true;
    this.#applyPending();
    if (!isFirst) return;
    logger.info({ revision: directory.revision, agents: directory.size }, 'the directory is loaded');
    this.#acknowledge();
    for (const tell of this.#waiting) tell();
  }

  /** Said after the listeners of the directory ran, so a subscription they made precedes it on the connection. */
  #acknowledge(): void {
    if (this.#isAckDue) return;
    this.#isAckDue = true;
    setImmediate(() => {
      this.#isAckDue = false;
      const { bus, subjects, nodeId, directory, logger } = this.#options;
      if (!bus.isUp || this.#stopping.signal.aborted) return;
      const ack: ReplicaAck = { v: 1, nodeId, revision: directory.revision };
      try {
        bus.publish(subjects.acks(nodeId), encodeBody(ack));
      } catch (error) {
        logger.warn({ err: error }, 'could not acknowledge a revision');
      }
    });
  }

  #stopError(): PatchbayError | undefined {
    return this.#isLoaded
      ? undefined
      : new PatchbayError('cancelled', 'the directory was stopped before it was loaded');
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#stopping;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', finish);
        resolve();
      };
      const timer = setTimeout(finish, ms).unref();
      signal.addEventListener('abort', finish);
      this.#wake = finish;
    });
  }
}
