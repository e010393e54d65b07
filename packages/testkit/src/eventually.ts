/** How {@link eventually} waits. */
export interface EventuallyOptions {
  /** Milliseconds until it gives up. Default 5,000. */
  readonly withinMs?: number;
  /** Milliseconds between two looks. Default 20. */
  readonly everyMs?: number;
  /** What is waited for, for the error. */
  readonly what?: string;
}

/**
 * Looks again and again until `probe` returns something other than undefined, null or false, and returns that.
 * @throws Error when it has not within `withinMs`, with the last error of `probe` as cause.
 */
export async function eventually<T>(
  probe: () => T | Promise<T>,
  options: EventuallyOptions = {},
): Promise<Exclude<T, undefined | null | false>> {
  const { withinMs = 5_000, everyMs = 20, what = 'the condition' } = options;
  const end = performance.now() + withinMs;
  let cause: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== null && value !== false) {
        return value as Exclude<T, undefined | null | false>;
      }
    } catch (error) {
      cause = error;
    }
    if (performance.now() > end) throw new Error(`${what} did not come true within ${withinMs} ms`, { cause });
    await new Promise((resolve) => {
      setTimeout(resolve, everyMs);
    });
  }
}
