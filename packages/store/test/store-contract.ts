import type { AgentRecord, RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import type { OpenedStore, RegistryWrite, WriteOutcome } from '@patchbay/store';
import { eventually } from '@patchbay/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

/** Far more than any test takes: sweeps with it are never overdue. */
const LONG_INTERVAL_MS = 600_000;
const OPTIONS = { nodeId: 'node-a', maxAgents: 0 };

/** A record of the kind that a reader makes. */
export function record(agentId: string, more: Partial<AgentRecord> = {}): AgentRecord {
  return {
    agentId,
    dialect: 'kubemq',
    name: 'Echo агент',
    description: 'says what it hears',
    version: '1.0.0',
    url: 'http://127.0.0.1:7000/',
    skills: [{ id: 's', name: 'S', description: 'd', tags: ['a', 'b'], examples: ['x'] }],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    protocolVersions: ['0.3'],
    interfaces: [{ url: 'http://127.0.0.1:7000/', binding: 'JSONRPC', protocolVersion: '0.3' }],
    extra: { 'x-note': 'é "quoted" \\u0000 \\ end', n: 1.5 },
    ...more,
  };
}

export function register(agentId: string, more: Partial<AgentRecord> = {}): RegistryWrite {
  return { kind: 'register', record: record(agentId, more), cardRaw: Buffer.from(`{"agent_id":"${agentId}"}`) };
}

export function deregister(agentId: string): RegistryWrite {
  return { kind: 'deregister', agentId };
}

/** The events of the writes that were carried out. */
export function eventsOf(outcomes: readonly WriteOutcome[]): RegistryEvent[] {
  return outcomes.flatMap((outcome) => (outcome.kind === 'written' ? outcome.event : []));
}

export function codesOf(outcomes: readonly WriteOutcome[]): string[] {
  return outcomes.map((outcome) => (outcome.kind === 'written' ? outcome.event.kind : outcome.code));
}

/** The whole history, which must have no gap. */
export async function history(store: OpenedStore): Promise<RegistryEvent[]> {
  const events: RegistryEvent[] = [];
  for (;;) {
    const more = await store.registry.eventsAfter(events.at(-1)?.revision ?? 0, 500);
    if (more === null) throw new Error('the history is pruned');
    if (more.length === 0) break;
    events.push(...more);
  }
  expect(events.map((event) => event.revision)).toEqual(events.map((_, index) => index + 1));
  return events;
}

/** What the agents are after `events`, in list order. */
function replay(events: readonly RegistryEvent[]): RegisteredAgent[] {
  const agents = new Map<string, RegisteredAgent>();
  for (const event of events) {
    if (event.agent === null) agents.delete(event.agentId);
    else agents.set(event.agentId, event.agent);
  }
  return [...agents.values()].toSorted((a, b) => a.ordinal - b.ordinal);
}

/** What both adapters must do. `open` gives a store with an empty database of its own. */
export function describeStore(name: string, open: () => Promise<OpenedStore>): void {
  describe(`the store on ${name}`, () => {
    let store: OpenedStore;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(async () => {
      await store.close();
    });

    const write = async (...writes: RegistryWrite[]): Promise<WriteOutcome[]> =>
      await store.registry.write(writes, OPTIONS);

    /** Lets the database's clock go on. */
    const clockMoves = async (): Promise<void> => {
      const before = await store.liveness.databaseTimeMs();
      await eventually(async () => (await store.liveness.databaseTimeMs()) > before);
    };

    describe('registrations', () => {
      test('a new agent gets the next revision as its ordinal, and is read as it was written', async () => {
        const outcomes = await write(register('agent-1'), register('agent-2'));
        const [first, second] = eventsOf(outcomes);
        expect(first).toMatchObject({ v: 1, revision: 1, kind: 'registered', agentId: 'agent-1', nodeId: 'node-a' });
        expect(first?.agent).toEqual({
          record: record('agent-1'),
          ordinal: 1,
          revision: 1,
          registeredAtMs: first?.atMs,
          lastSeenMs: first?.atMs,
        });
        expect(Math.abs((first?.atMs ?? 0) - Date.now())).toBeLessThan(60_000);
        expect(Number.isInteger(first?.atMs)).toBe(true);
        expect(second?.agent?.ordinal).toBe(2);
        expect(await store.registry.get('agent-1')).toEqual(first?.agent);
        expect(await store.registry.head()).toEqual({ revision: 2, agentCount: 2, prunedTo: 0 });
        expect(await store.registry.eventsAfter(0, 10)).toEqual([first, second]);
      });

      test('a re-registration keeps registered_at and place, and refreshes everything else', async () => {
        const [before] = eventsOf(await write(register('agent-1')));
        await write(register('agent-2'));
        await clockMoves();
        const [event] = eventsOf(await write(register('agent-1', { name: 'New' })));
        expect(event).toMatchObject({ revision: 3, kind: 'updated' });
        expect(event?.agent).toMatchObject({ ordinal: 1, registeredAtMs: before?.atMs, record: { name: 'New' } });
        expect(event?.agent?.lastSeenMs).toBeGreaterThan(before?.atMs ?? Infinity);
        expect(await store.registry.get('agent-1')).toEqual(event?.agent);
        expect((await store.registry.head()).agentCount).toBe(2);
      });

      test('after a deregistration a registration is a new one, at the end of the list', async () => {
        const [before] = eventsOf(await write(register('agent-1'), register('agent-2')));
        expect(codesOf(await write(deregister('agent-1')))).toEqual(['deregistered']);
        expect(await store.registry.get('agent-1')).toBeNull();
        await clockMoves();
        const [event] = eventsOf(await write(register('agent-1')));
        expect(event).toMatchObject({ revision: 4, kind: 'registered', agent: { ordinal: 4 } });
        expect(event?.agent?.registeredAtMs).toBeGreaterThan(before?.atMs ?? Infinity);
        const { agents } = await store.registry.snapshot();
        expect(agents.map((agent) => agent.record.agentId)).toEqual(['agent-2', 'agent-1']);
      });

      test('what is refused burns no revision', async () => {
        expect(codesOf(await write(deregister('nobody')))).toEqual(['agent_not_found']);
        expect(await store.registry.head()).toEqual({ revision: 0, agentCount: 0, prunedTo: 0 });
        expect(eventsOf(await write(register('agent-1')))[0]?.revision).toBe(1);
      });

      test('one id several times in a batch: decided in order', async () => {
        const outcomes = await write(
          register('agent-1'),
          register('agent-1', { name: 'Second' }),
          deregister('agent-1'),
          deregister('agent-1'),
          register('agent-1', { name: 'Third' }),
          register('agent-2'),
          deregister('agent-2'),
        );
        expect(codesOf(outcomes)).toEqual([
          'registered',
          'updated',
          'deregistered',
          'agent_not_found',
          'registered',
          'registered',
          'deregistered',
        ]);
        const agent = await store.registry.get('agent-1');
        expect(agent).toMatchObject({ ordinal: 4, revision: 4, record: { name: 'Third' } });
        expect(await store.registry.get('agent-2')).toBeNull();
        expect(await store.registry.head()).toEqual({ revision: 6, agentCount: 1, prunedTo: 0 });
        expect(replay(await history(store))).toEqual([agent]);
      });

      test('a row that cannot be stored fails alone', async () => {
        const outcomes = await write(
          register('agent-1'),
          register('agent-2', { description: 'a\0b' }),
          register('agent-3', { extra: { deep: [{ '\ud800': 1 }] } }),
          deregister('agent\0'),
          register('agent-4'),
        );
        expect(codesOf(outcomes)).toEqual([
          'registered',
          'invalid_argument',
          'invalid_argument',
          'agent_not_found',
          'registered',
        ]);
        expect(await store.registry.head()).toEqual({ revision: 2, agentCount: 2, prunedTo: 0 });
      });

      test('an agent of one owner is not replaced by another', async () => {
        await write(register('agent-1', { owner: 'ann' }), register('agent-2'));
        const outcomes = await write(
          register('agent-1', { owner: 'bob' }),
          register('agent-2', { owner: 'bob' }),
          register('agent-1', { owner: 'ann', name: 'Hers' }),
        );
        expect(codesOf(outcomes)).toEqual(['permission_denied', 'permission_denied', 'updated']);
        expect(await store.registry.get('agent-1')).toMatchObject({ record: { owner: 'ann', name: 'Hers' } });
      });

      test('an empty batch does nothing', async () => {
        expect(await write()).toEqual([]);
      });
    });

    describe('the limit on agents', () => {
      test('holds when 50 race for the last place', async () => {
        const limited = { nodeId: 'node-a', maxAgents: 3 };
        await store.registry.write([register('agent-1'), register('agent-2')], limited);
        const outcomes = await Promise.all(
          Array.from({ length: 50 }, (_, index) => store.registry.write([register(`racer-${index}`)], limited)),
        );
        const codes = codesOf(outcomes.flat());
        expect(codes.filter((code) => code === 'registered')).toHaveLength(1);
        expect(codes.filter((code) => code === 'agent_limit_reached')).toHaveLength(49);
        expect(await store.registry.head()).toEqual({ revision: 3, agentCount: 3, prunedTo: 0 });
        // Known agents may go on, and a place that is given up is free in the same batch.
        const more = await store.registry.write(
          [register('agent-1'), register('new-1'), deregister('agent-2'), register('new-1')],
          limited,
        );
        expect(codesOf(more)).toEqual(['updated', 'agent_limit_reached', 'deregistered', 'registered']);
      });
    });

    describe('revisions', () => {
      test('are gapless and in the order of commits under 8 writers', async () => {
        const writing = new AbortController();
        const seen: number[] = [];
        const reader = (async () => {
          while (!writing.signal.aborted || (await store.registry.head()).revision > seen.length) {
            for (const event of (await store.registry.eventsAfter(seen.at(-1) ?? 0, 100)) ?? []) {
              seen.push(event.revision);
            }
          }
        })();
        await Promise.all(
          Array.from({ length: 8 }, async (_, writer) => {
            for (let round = 0; round < 10; round += 1) {
              await write(
                register(`agent-${writer}-${round}`),
                deregister('nobody'),
                register('shared'),
                ...(round % 3 === 2 ? [deregister(`agent-${writer}-${round - 1}`)] : []),
              );
            }
          }),
        );
        writing.abort();
        await reader;
        expect(seen).toEqual(seen.map((_, index) => index + 1));
        const events = await history(store);
        const { head, agents } = await store.registry.snapshot();
        expect(events).toHaveLength(8 * (10 * 2 + 3));
        expect(head).toEqual({ revision: events.length, agentCount: agents.length, prunedTo: 0 });
        expect(agents).toEqual(replay(events));
      });

      test('a snapshot is one point in time', async () => {
        const writing = new AbortController();
        const writer = (async () => {
          for (let round = 0; !writing.signal.aborted; round += 1) {
            await write(
              register(`agent-${round % 7}`),
              register(`agent-${round % 5}`),
              deregister(`agent-${round % 3}`),
            );
          }
        })();
        for (let look = 0; look < 20; look += 1) {
          const { head, agents } = await store.registry.snapshot();
          const before = (await store.registry.eventsAfter(0, 1_000_000))?.slice(0, head.revision) ?? [];
          expect(agents).toEqual(replay(before));
          expect(head.agentCount).toBe(agents.length);
        }
        writing.abort();
        await writer;
      });

      test('a snapshot larger than a page is whole and in order', async () => {
        const ids = Array.from({ length: 5_001 }, (_, index) => `agent-${index}`);
        await store.registry.write(
          ids.map((id) => register(id)),
          OPTIONS,
        );
        const { agents } = await store.registry.snapshot();
        expect(agents.map((agent) => agent.record.agentId)).toEqual(ids);
      });
    });

    describe('the history', () => {
      test('is read in pages from any revision; one ahead of the head needs a snapshot', async () => {
        await write(register('agent-1'), register('agent-2'), deregister('agent-1'));
        expect((await store.registry.eventsAfter(0, 2))?.map((event) => event.revision)).toEqual([1, 2]);
        expect((await store.registry.eventsAfter(2, 2))?.map((event) => event.kind)).toEqual(['deregistered']);
        expect(await store.registry.eventsAfter(3, 2)).toEqual([]);
        expect(await store.registry.eventsAfter(4, 2)).toBeNull();
      });

      test('is pruned to the newest revisions', async () => {
        await store.registry.write(
          Array.from({ length: 10 }, (_, index) => register(`agent-${index}`)),
          OPTIONS,
        );
        await store.registry.prune(20);
        expect((await store.registry.head()).prunedTo).toBe(0);
        await store.registry.prune(3);
        expect(await store.registry.head()).toEqual({ revision: 10, agentCount: 10, prunedTo: 7 });
        expect(await store.registry.eventsAfter(6, 10)).toBeNull();
        expect((await store.registry.eventsAfter(7, 10))?.map((event) => event.revision)).toEqual([8, 9, 10]);
        await store.registry.prune(5);
        expect((await store.registry.head()).prunedTo).toBe(7);
        await store.registry.prune(0);
        expect(await store.registry.eventsAfter(10, 10)).toEqual([]);
        expect(await store.registry.eventsAfter(9, 10)).toBeNull();
      });

      test('carries the trace of the write', async () => {
        const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
        await write({ ...register('agent-1'), traceparent }, { ...deregister('agent-1'), traceparent });
        expect((await history(store)).map((event) => event.traceparent)).toEqual([traceparent, traceparent]);
      });
    });

    describe('signs of life', () => {
      test('only move forward; unknown agents and repeated ones do no harm', async () => {
        const [event] = eventsOf(await write(register('agent-1'), register('agent-2')));
        const registeredAtMs = event?.atMs ?? 0;
        const nowMs = await store.liveness.recordBeats([
          { agentId: 'agent-1', lastSeenMs: registeredAtMs + 5 },
          { agentId: 'agent-1', lastSeenMs: registeredAtMs + 7 },
          { agentId: 'agent-1', lastSeenMs: registeredAtMs + 6 },
          { agentId: 'agent-2', lastSeenMs: registeredAtMs - 10_000 },
          { agentId: 'nobody', lastSeenMs: registeredAtMs },
        ]);
        expect(nowMs).toBeGreaterThanOrEqual(registeredAtMs);
        expect((await store.registry.get('agent-1'))?.lastSeenMs).toBe(registeredAtMs + 7);
        expect((await store.registry.get('agent-2'))?.lastSeenMs).toBe(registeredAtMs);
        expect(await store.registry.get('nobody')).toBeNull();
        expect(await store.liveness.recordBeats([])).toBeGreaterThanOrEqual(nowMs);
        // A re-registration does not take a newer sign of life back.
        await store.liveness.recordBeats([{ agentId: 'agent-1', lastSeenMs: nowMs + 60_000 }]);
        const [updated] = eventsOf(await write(register('agent-1')));
        expect(updated?.agent?.lastSeenMs).toBe(nowMs + 60_000);
        expect(await store.registry.get('agent-1')).toEqual(updated?.agent);
      });
    });

    describe('the sweep', () => {
      const sweep = { nodeId: 'node-b', ttlMs: 1, intervalMs: LONG_INTERVAL_MS };

      test('of a fresh database only starts the clock; the next removes who was silent', async () => {
        await write(register('agent-1'), register('agent-2'), register('agent-3'));
        await clockMoves();
        await clockMoves();
        expect(await store.liveness.sweep(sweep)).toEqual({ kind: 'swept', expired: [] });
        const nowMs = await store.liveness.databaseTimeMs();
        await store.liveness.recordBeats([{ agentId: 'agent-2', lastSeenMs: nowMs + 60_000 }]);
        const outcome = await store.liveness.sweep(sweep);
        expect(outcome).toMatchObject({
          kind: 'swept',
          expired: [
            { revision: 4, kind: 'deregistered', agentId: 'agent-1', agent: null, nodeId: 'node-b', reason: 'expired' },
            { revision: 5, kind: 'deregistered', agentId: 'agent-3', agent: null, nodeId: 'node-b', reason: 'expired' },
          ],
        });
        expect(await store.registry.head()).toEqual({ revision: 5, agentCount: 1, prunedTo: 0 });
        expect(await store.registry.get('agent-1')).toBeNull();
        expect((await history(store)).slice(3)).toEqual(outcome.kind === 'swept' ? outcome.expired : []);
        const [again] = eventsOf(await write(register('agent-1')));
        expect(again).toMatchObject({ kind: 'registered', agent: { ordinal: 6 } });
      });

      test('removes nobody who was heard within the TTL, and adds the time that nobody could be heard', async () => {
        await write(register('agent-1'));
        await store.liveness.sweep(sweep);
        await clockMoves();
        await clockMoves();
        const nobody = { kind: 'swept', expired: [] };
        expect(await store.liveness.sweep({ ...sweep, ttlMs: 300_000 })).toEqual(nobody);
        expect(await store.liveness.sweep({ ...sweep, deafMs: 300_000 })).toEqual(nobody);
        expect(await store.liveness.sweep(sweep)).toMatchObject({ expired: [{ agentId: 'agent-1' }] });
      });

      test('that is overdue waits one TTL from when we can hear again', async () => {
        await write(register('agent-1'));
        await store.liveness.sweep(sweep);
        await clockMoves();
        const beforeMs = await store.liveness.databaseTimeMs();
        // Overdue: more than two intervals of 0 ms have passed.
        const overdue = await store.liveness.sweep({ ...sweep, ttlMs: 400, intervalMs: 0 });
        expect(overdue.kind).toBe('grace');
        const untilMs = overdue.kind === 'grace' ? overdue.untilMs : 0;
        expect(untilMs).toBeGreaterThanOrEqual(beforeMs + 400);
        // The next sweep is in time, and neither ends the grace nor makes it longer.
        expect(await store.liveness.sweep({ ...sweep, ttlMs: 400 })).toEqual({ kind: 'grace', untilMs });
        expect(await store.registry.get('agent-1')).not.toBeNull();
        await eventually(async () => (await store.liveness.databaseTimeMs()) > untilMs);
        expect(await store.liveness.sweep(sweep)).toMatchObject({ kind: 'swept', expired: [{ agentId: 'agent-1' }] });
      });

      test('by many nodes at once removes each agent once', async () => {
        await store.registry.write(
          Array.from({ length: 20 }, (_, index) => register(`agent-${index}`)),
          OPTIONS,
        );
        await store.liveness.sweep(sweep);
        await clockMoves();
        await clockMoves();
        const outcomes = await Promise.all(Array.from({ length: 5 }, () => store.liveness.sweep(sweep)));
        expect(outcomes.flatMap((outcome) => (outcome.kind === 'swept' ? outcome.expired : []))).toHaveLength(20);
        expect((await store.registry.head()).agentCount).toBe(0);
      });

      test('beside beats: whoever is left was heard, whoever is gone has its event', async () => {
        await store.liveness.sweep(sweep);
        for (let round = 0; round < 5; round += 1) {
          const ids = Array.from({ length: 50 }, (_, index) => `agent-${round}-${index}`);
          await store.registry.write(
            ids.map((id) => register(id)),
            OPTIONS,
          );
          await clockMoves();
          await clockMoves();
          const heardMs = (await store.liveness.databaseTimeMs()) + 600_000;
          const heard = ids.slice(0, 30).map((agentId) => ({ agentId, lastSeenMs: heardMs }));
          const [outcome] = await Promise.all([
            store.liveness.sweep(sweep),
            ...Array.from({ length: 3 }, (_, part) =>
              store.liveness.recordBeats(heard.slice(part * 10, part * 10 + 10).toReversed()),
            ),
          ]);
          const gone = new Set(outcome.kind === 'swept' ? outcome.expired.map((event) => event.agentId) : []);
          expect(ids.slice(30).every((id) => gone.has(id))).toBe(true);
          for (const agentId of ids) {
            const agent = await store.registry.get(agentId);
            expect(agent?.lastSeenMs).toBe(gone.has(agentId) ? undefined : heardMs);
          }
          await store.registry.write(
            ids.map((id) => deregister(id)),
            OPTIONS,
          );
        }
        const events = await history(store);
        expect(replay(events)).toEqual([]);
        expect((await store.registry.head()).agentCount).toBe(0);
      });
    });
  });
}
