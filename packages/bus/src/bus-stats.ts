/** What an adapter holds right now; all zero but `subscriptions` when nothing is going on. For tests and metrics. */
export interface BusStats {
  /** Subscriptions that take messages. */
  readonly subscriptions: number;
  /** Requests that wait for their reply. */
  readonly requests: number;
  /** Streams that are being read. */
  readonly streams: number;
  /** Exchanges that a handler has not ended. */
  readonly exchanges: number;
  /** Deadlines that are waited for. */
  readonly timers: number;
}
