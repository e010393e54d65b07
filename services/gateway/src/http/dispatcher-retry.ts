import { setTimeout as sleep } from 'node:timers/promises';
import { DeadlineExceededError, NoRespondersError } from '@patchbay/bus';
import type { Subjects } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import type { Directory } from '@patchbay/directory';
import type { RegistryClient } from '@patchbay/service-api';

/** A fresh subscription takes a moment to be known everywhere; so long a caller is made to wait for it. */
const RETRY_AFTER_MS = [10, 50, 150];
const LOOKUP_TIMEOUT_MS = 2_000;

/** What {@link DispatcherRetry} needs to know what "nobody serves it" means. */
export interface DispatcherRetryOptions {
  readonly directory: Pick<Directory, 'get'>;
  readonly registry: Pick<RegistryClient, 'lookup'>;
  readonly subjects: Subjects;
}

/**
 * Tells an agent that does not exist from one that no dispatch serves yet. "No responders" is the bus's word and comes
 * at once; the directory may lag behind the registry, so what it does not know is asked of the registry once.
 */
export class DispatcherRetry {
  readonly #options: DispatcherRetryOptions;

  constructor(options: DispatcherRetryOptions) {
    this.#options = options;
  }

  /**
   * Runs `attempt` again with the time that is left until `endMs`, after nobody served the agent's subject and while
   * nobody does. Nothing has gone to the agent then, so no call is executed twice.
   * @param endMs on the process's monotonic clock
   * @throws PatchbayError agent_not_found, no_dispatcher, and what `attempt` throws
   */
  async run<T>(
    agentId: string,
    endMs: number,
    signal: AbortSignal,
    attempt: (timeoutLeftMs: number) => Promise<T>,
  ): Promise<T> {
    const startMs = performance.now();
    const wasKnown = this.#options.directory.get(agentId) !== undefined;
    if (!wasKnown) await this.#askRegistry(agentId, endMs, signal);
    for (const delayMs of RETRY_AFTER_MS) {
      await pause(delayMs, signal);
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) throw new DeadlineExceededError(this.#options.subjects.agent(agentId), endMs - startMs);
      try {
        return await attempt(leftMs);
      } catch (error) {
        if (!(error instanceof NoRespondersError)) throw error;
      }
    }
    // It may have been deregistered, and our directory not heard of it.
    if (wasKnown) await this.#askRegistry(agentId, endMs, signal).catch(rethrowNotFound);
    throw new PatchbayError('no_dispatcher', `no node serves agent ${agentId} at the moment; try again`);
  }

  /** @throws PatchbayError agent_not_found; or the reason why the registry cannot be asked */
  async #askRegistry(agentId: string, endMs: number, signal: AbortSignal): Promise<void> {
    const timeoutMs = Math.min(LOOKUP_TIMEOUT_MS, Math.max(1, endMs - performance.now()));
    const agent = await this.#options.registry.lookup(agentId, { timeoutMs, signal });
    if (agent === null) throw new PatchbayError('agent_not_found', agentId);
  }
}

function rethrowNotFound(error: unknown): void {
  if (error instanceof PatchbayError && error.code === 'agent_not_found') throw error;
}

/** @throws PatchbayError cancelled when the caller left meanwhile */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (cause) {
    throw new PatchbayError('cancelled', 'the caller has left', { cause });
  }
}
