import { setTimeout as pause } from 'node:timers/promises';
import { eventually, PatchbayCluster, startScriptedAgent } from '@patchbay/testkit';
import type { PatchbayProcess, ScriptedAgent } from '@patchbay/testkit';
import { describe, expect, test } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';

interface Called {
  readonly id: string;
  /** When it was made, and when it was answered. */
  readonly startMs: number;
  readonly endMs: number;
  /** What went wrong; undefined for a result. */
  readonly trouble: string | undefined;
}

/** Callers that call one after the other until they are stopped, and what became of each call. */
class Load {
  readonly calls: Called[] = [];
  readonly #stop = new AbortController();
  readonly #callers: Promise<void>[];

  constructor(node: PatchbayProcess, callers: number) {
    this.#callers = Array.from({ length: callers }, (_, caller) => this.#run(node, `${node.url} ${caller}`));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#callers);
  }

  failedAfter(ms: number): Called[] {
    return this.calls.filter(({ startMs, trouble }) => startMs > ms && trouble !== undefined);
  }

  async #run(node: PatchbayProcess, name: string): Promise<void> {
    for (let count = 0; !this.#stop.signal.aborted; count += 1) {
      const id = `${name} ${count}`;
      const startMs = performance.now();
      const answer = await callAgent(node, 'echo-01', 'message/send', {}, id);
      const trouble = answer.result === undefined ? JSON.stringify(answer.error) : undefined;
      this.calls.push({ id, startMs, endMs: performance.now(), trouble });
      await pause(10);
    }
  }
}

/** Ids of the calls that reached the agent more than once. */
function repeated(agent: ScriptedAgent): unknown[] {
  const ids = agent.requests.map(({ body }) => (JSON.parse(body.toString()) as { id: unknown }).id);
  return ids.filter((id, at) => id !== 'extra' && ids.indexOf(id) !== at);
}

describe('a node is stopped, and goes on later', () => {
  test('what is served where it comes in does not notice, and what crosses the bus fails for seconds only', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' });
    const envOf = (index: number): Record<string, string> => (index === 1 ? { PATCHBAY_LOCAL_FIRST: 'false' } : {});
    await using cluster = await PatchbayCluster.start({ envOf });
    const [local, forced, stopped] = cluster.nodes;
    if (local === undefined || forced === undefined || stopped === undefined) throw new Error('a node is missing');
    await registerAgent(local, 'echo-01', agent.url);
    const localLoad = new Load(local, 2);
    const forcedLoad = new Load(forced, 6);
    await pause(500);
    const stoppedMs = performance.now();
    stopped.pause();
    // Past the time when the others take it for gone: it keeps its place in the queue group.
    await pause(8_000);
    stopped.resume();
    await eventually(async () => (await callAgent(stopped, 'echo-01', 'message/send', {}, 'extra')).result, {
      withinMs: 10_000,
      what: 'the node that was stopped answering again',
    });
    // What it finds in its sockets is of calls that nobody waits for any more.
    await pause(1_000);
    await Promise.all([localLoad.stop(), forcedLoad.stop()]);

    expect(localLoad.failedAfter(0)).toEqual([]);
    // Two seconds until it is a suspect, and as much again for slow machines.
    expect(forcedLoad.failedAfter(stoppedMs + 4_000)).toEqual([]);
    const failed = forcedLoad.failedAfter(0);
    expect(failed.length).toBeGreaterThan(0);
    for (const { startMs, endMs, trouble } of failed) {
      expect(trouble).toContain('no longer answers');
      // Three seconds after the last sign of life, and room for machines without a free processor.
      expect(endMs - startMs).toBeLessThan(5_000);
    }
    expect(repeated(agent)).toEqual([]);
  });
});
