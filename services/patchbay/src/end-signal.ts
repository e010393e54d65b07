import type { Logger } from '@patchbay/telemetry';

/** Why a node ends. */
export interface EndReason {
  /** 0 when somebody asked for it, 1 when something broke. */
  readonly exitCode: 0 | 1;
  readonly message: string;
}

/**
 * On Ctrl-C the terminal signals every process, and npm passes its own on a moment later: signals this close together
 * are one wish.
 */
const SAME_WISH_MS = 500;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Watches for what ends this process: the first SIGINT, SIGTERM or SIGHUP (a closed terminal), an error that nobody caught, or `end()`. A second
 * signal ends the process at once.
 */
export class EndSignal implements Disposable {
  readonly #controller = new AbortController();
  readonly #logger: Logger;
  readonly #ending: Promise<EndReason>;
  #resolve: (reason: EndReason) => void = () => {};
  #endedAtMs: number | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
    this.#ending = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    for (const signal of SIGNALS) process.on(signal, this.#onSignal);
    process.on('uncaughtException', this.#onError).on('unhandledRejection', this.#onError);
  }

  /** Aborts when the process is to end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Resolves with the first reason to end. */
  get reason(): Promise<EndReason> {
    return this.#ending;
  }

  /** Ends the process for this reason, unless it ends already. */
  end(reason: EndReason): void {
    this.#endedAtMs ??= performance.now();
    this.#resolve(reason);
    this.#controller.abort();
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal);
    process.off('uncaughtException', this.#onError).off('unhandledRejection', this.#onError);
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    if (this.#endedAtMs === undefined) this.end({ exitCode: 0, message: `received ${signal}` });
    else if (performance.now() - this.#endedAtMs > SAME_WISH_MS) process.exit(1);
  };

  readonly #onError = (error: unknown): void => {
    this.#logger.fatal({ err: error }, 'an error that nobody caught; this node ends');
    this.end({ exitCode: 1, message: 'an error that nobody caught' });
  };
}
