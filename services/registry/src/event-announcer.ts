import type { RegistryEvent } from '@patchbay/agent-card';
import type { Bus, Subjects } from '@patchbay/bus';
import type { Directory, DirectoryReplica } from '@patchbay/directory';
import { publishEvents } from '@patchbay/service-api';
import type { RegistryStore } from '@patchbay/store';
import type { Logger } from '@patchbay/telemetry';

/** What {@link EventAnnouncer} needs. */
export interface EventAnnouncerOptions {
  readonly bus: Bus;
  readonly subjects: Subjects;
  readonly store: Pick<RegistryStore, 'head' | 'eventsAfter'>;
  readonly directory: Pick<Directory, 'revision'>;
  readonly replica: Pick<DirectoryReplica, 'applyLocally' | 'noticeHead'>;
  readonly nodeId: string;
  readonly logger: Logger;
}

const EVENTS_PER_QUERY = 500;

/**
 * Tells of committed events, and finds out what was committed when nobody can say: after a COMMIT whose answer was
 * lost, the head knows.
 */
export class EventAnnouncer {
  readonly #options: EventAnnouncerOptions;
  #announcedTo = 0;
  /** Set while the outcome of a write is unknown: everything after this revision has to be looked at. */
  #unknownSince: number | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: EventAnnouncerOptions) {
    this.#options = options;
  }

  /** Publishes `events`, and hands them to this node's own directory. Never throws: the table is the safe way. */
  announce(events: readonly RegistryEvent[]): void {
    const { bus, subjects, replica, logger } = this.#options;
    const last = events.at(-1);
    if (last === undefined) return;
    try {
      publishEvents(bus, subjects, events);
    } catch (error) {
      logger.warn({ err: error, revision: last.revision }, 'could not publish events; the other nodes will fetch them');
    }
    this.#announcedTo = Math.max(this.#announcedTo, last.revision);
    replica.applyLocally(events);
  }

  /** A write failed, and may have been committed all the same. */
  noteUnknownOutcome(): void {
    this.#unknownSince ??= this.#options.directory.revision;
  }

  /**
   * Announces what was committed although its answer was lost; nothing to do in the normal case. Look before the
   * next write. One look at a time.
   * @throws PatchbayError `store_unavailable`; the question stays open
   */
  async settleUnknown(): Promise<void> {
    if (this.#unknownSince === undefined) return;
    this.#looking ??= this.#look(this.#unknownSince).finally(() => (this.#looking = undefined));
    await this.#looking;
  }

  async #look(since: number): Promise<void> {
    const { store, nodeId, replica, logger } = this.#options;
    const head = await store.head();
    for (let at = since; at < head.revision;) {
      const events = await store.eventsAfter(at, EVENTS_PER_QUERY);
      const last = events?.at(-1);
      if (events === null || last === undefined) break;
      // Others announce their own; only what this node wrote and never told is news.
      const untold = events.filter((event) => event.nodeId === nodeId && event.revision > this.#announcedTo);
      if (untold.length > 0) {
        logger.warn({ events: untold.length, revision: last.revision }, 'found committed writes whose answer was lost');
        this.announce(untold);
      }
      at = last.revision;
    }
    replica.noticeHead(head.revision);
    this.#unknownSince = undefined;
  }
}
