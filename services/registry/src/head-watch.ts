import type { DirectoryReplica, Membership } from '@patchbay/directory';
import type { RegistryStore } from '@patchbay/store';
import type { Logger } from '@patchbay/telemetry';
import type { EventAnnouncer } from './event-announcer.js';

const POLL_INTERVAL_MS = 2_000;
/** Revisions that stay in the table: a node further behind takes a snapshot. */
const KEEP_REVISIONS = 100_000;
/** Prune when so many more have gathered. */
const PRUNE_STEP = 5_000;

/** What {@link HeadWatch} needs. */
export interface HeadWatchOptions {
  readonly store: RegistryStore;
  readonly replica: Pick<DirectoryReplica, 'noticeHead'>;
  readonly membership: Pick<Membership, 'report'>;
  readonly announcer: Pick<EventAnnouncer, 'settleUnknown'>;
  readonly logger: Logger;
}

/** Looks at the registry's head every 2 s: for writes that nobody told of, for old events, and for the database itself. */
export class HeadWatch {
  readonly #options: HeadWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #isStoreUp = true;
  #isStopped = false;
  /** A look was asked for while another was in hand. */
  #isAgainWanted = false;

  constructor(options: HeadWatchOptions) {
    this.#options = options;
    this.#schedule(POLL_INTERVAL_MS);
  }

  /** Looks at once instead of at the next turn. */
  lookNow(): void {
    if (this.#looking === undefined) this.#schedule(0);
    else this.#isAgainWanted = true;
  }

  /** Resolves when the look in hand is over. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  #schedule(inMs: number): void {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#looking = this.#look().finally(() => {
        this.#looking = undefined;
        this.#schedule(this.#isAgainWanted ? 0 : POLL_INTERVAL_MS);
        this.#isAgainWanted = false;
      });
    }, inMs).unref();
  }

  async #look(): Promise<void> {
    const { store, replica, announcer, logger } = this.#options;
    try {
      await announcer.settleUnknown();
      const head = await store.head();
      replica.noticeHead(head.revision);
      if (head.revision - head.prunedTo > KEEP_REVISIONS + PRUNE_STEP) await store.prune(KEEP_REVISIONS);
      this.#noteStore(true);
    } catch (error) {
      if (this.#isStoreUp) logger.warn({ err: error }, 'the registry cannot reach the database');
      this.#noteStore(false);
    }
  }

  #noteStore(isUp: boolean): void {
    if (isUp === this.#isStoreUp) return;
    this.#isStoreUp = isUp;
    this.#options.membership.report({ store: isUp });
    if (isUp) this.#options.logger.info('the registry reaches the database again');
  }
}
