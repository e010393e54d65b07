import type { HeartbeatReply } from '@patchbay/service-api';
import type { Beat } from '@patchbay/store';

/** Beats on their way to the database and to the other nodes: one entry for each agent, its newest. */
export class BeatBook {
  #unwritten = new Map<string, number>();
  #untold = new Map<string, number>();

  note(beat: Beat): void {
    keepNewest(this.#unwritten, beat);
    keepNewest(this.#untold, beat);
  }

  /** The newest beat of an agent that is not in the database yet. */
  unwrittenOf(agentId: string): number | undefined {
    return this.#unwritten.get(agentId);
  }

  get unwritten(): number {
    return this.#unwritten.size;
  }

  /** Takes what has to be written; `putBack` it when that fails. */
  takeUnwritten(): Beat[] {
    const beats = listOf(this.#unwritten);
    this.#unwritten = new Map();
    return beats;
  }

  putBack(beats: readonly Beat[]): void {
    for (const beat of beats) keepNewest(this.#unwritten, beat);
  }

  /** Takes what the other nodes have to be told. */
  takeUntold(): HeartbeatReply[] {
    const beats = listOf(this.#untold);
    this.#untold = new Map();
    return beats;
  }
}

function keepNewest(beats: Map<string, number>, { agentId, lastSeenMs }: Beat): void {
  if (lastSeenMs > (beats.get(agentId) ?? -Infinity)) beats.set(agentId, lastSeenMs);
}

function listOf(beats: ReadonlyMap<string, number>): Beat[] {
  return [...beats].map(([agentId, lastSeenMs]) => ({ agentId, lastSeenMs }));
}
