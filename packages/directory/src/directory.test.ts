import { describe, expect, it } from 'vitest';
import type { RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import { Directory } from './directory.js';
import type { DirectoryChange } from './directory.js';

function agent(agentId: string, ordinal: number, options: { revision?: number; tags?: string[]; seen?: number } = {}) {
  const { revision = ordinal, tags = [], seen = 1_000 } = options;
  const skills = [{ id: 's', name: 'S', description: '', tags }];
  const record = {
    agentId,
    dialect: 'kubemq' as const,
    name: agentId,
    description: '',
    version: '',
    url: 'http://localhost/',
    skills,
    defaultInputModes: [],
    defaultOutputModes: [],
    protocolVersions: [],
    interfaces: [],
    extra: {},
  };
  return { record, ordinal, revision, registeredAtMs: 1_000, lastSeenMs: seen };
}

function put(revision: number, put: RegisteredAgent): RegistryEvent {
  const kind = put.ordinal === revision ? 'registered' : 'updated';
  return { v: 1, revision, kind, agentId: put.record.agentId, agent: put, atMs: 0, nodeId: 'n' };
}

function gone(revision: number, agentId: string, reason?: 'expired'): RegistryEvent {
  const base = { v: 1, revision, kind: 'deregistered', agentId, agent: null, atMs: 0, nodeId: 'n' } as const;
  return reason === undefined ? base : { ...base, reason };
}

function ids(directory: Directory, filter = {}): string[] {
  return directory.list(filter).map((found) => found.record.agentId);
}

function watched(): { directory: Directory; changes: string[] } {
  const directory = new Directory();
  const changes: string[] = [];
  directory.onChange((change: DirectoryChange) => {
    const reason = change.kind === 'removed' ? ` ${change.reason}` : '';
    changes.push(`${change.kind} ${change.agent.record.agentId}${reason}`);
  });
  return { directory, changes };
}

describe('Directory', () => {
  it('applies events in the order of revisions and no others', () => {
    const { directory, changes } = watched();
    expect(directory.apply(put(2, agent('b', 2)))).toBe(false);
    expect(directory.apply(put(1, agent('a', 1)))).toBe(true);
    expect(directory.apply(put(1, agent('a', 1)))).toBe(false);
    expect(directory.apply(put(2, agent('b', 2)))).toBe(true);
    expect(directory.apply(gone(3, 'a'))).toBe(true);
    expect(directory.apply(gone(4, 'b', 'expired'))).toBe(true);
    expect(directory.apply(gone(5, 'never'))).toBe(true);
    expect(directory.revision).toBe(5);
    expect(directory.size).toBe(0);
    expect(changes).toEqual(['added a', 'added b', 'removed a deregistered', 'removed b expired']);
  });

  it('keeps the order of first registrations: an update moves nobody, a new registration goes to the end', () => {
    const { directory, changes } = watched();
    directory.apply(put(1, agent('a', 1)));
    directory.apply(put(2, agent('b', 2)));
    directory.apply(put(3, agent('a', 1, { revision: 3 })));
    expect(ids(directory)).toEqual(['a', 'b']);
    directory.apply(gone(4, 'a'));
    directory.apply(put(5, agent('a', 5)));
    expect(ids(directory)).toEqual(['b', 'a']);
    expect(changes).toEqual(['added a', 'added b', 'updated a', 'removed a deregistered', 'added a']);
  });

  it('filters by any of the tags, then limits', () => {
    const directory = new Directory();
    directory.apply(put(1, agent('a', 1, { tags: ['x', 'y'] })));
    directory.apply(put(2, agent('b', 2, { tags: ['z'] })));
    directory.apply(put(3, agent('c', 3, { tags: ['y'] })));
    expect(ids(directory, { skillTags: ['y', 'x'] })).toEqual(['a', 'c']);
    expect(ids(directory, { skillTags: ['z', 'y'], limit: 2 })).toEqual(['a', 'b']);
    expect(ids(directory, { skillTags: ['Y'] })).toEqual([]);
    expect(ids(directory, { skillTags: [] })).toEqual(['a', 'b', 'c']);
    expect(ids(directory, { limit: 1 })).toEqual(['a']);
    expect(ids(directory, { limit: 0 })).toEqual([]);
    directory.apply(put(4, agent('a', 1, { revision: 4, tags: ['w'] })));
    expect(ids(directory, { skillTags: ['x'] })).toEqual([]);
    expect(ids(directory, { skillTags: ['w'] })).toEqual(['a']);
    directory.apply(gone(5, 'a'));
    expect(ids(directory, { skillTags: ['w'] })).toEqual([]);
  });

  it('takes signs of life that are newer, and an event does not undo them', () => {
    const directory = new Directory();
    directory.apply(put(1, agent('a', 1, { seen: 1_000 })));
    directory.touch('a', 3_000);
    directory.touch('a', 2_000);
    directory.touch('nobody', 2_000);
    expect(directory.get('a')?.lastSeenMs).toBe(3_000);
    directory.apply(put(2, agent('a', 1, { revision: 2, seen: 2_500 })));
    expect(directory.get('a')?.lastSeenMs).toBe(3_000);
    directory.replaceAll([agent('a', 1, { revision: 2, seen: 2_000 })], 7);
    expect(directory.get('a')?.lastSeenMs).toBe(3_000);
  });

  it('replaces everything and tells only the differences', () => {
    const { directory, changes } = watched();
    directory.apply(put(1, agent('a', 1, { tags: ['x'] })));
    directory.apply(put(2, agent('b', 2)));
    directory.apply(put(3, agent('c', 3)));
    changes.length = 0;
    const changed = agent('c', 3, { revision: 8, tags: ['x'] });
    directory.replaceAll([agent('d', 9), changed, agent('b', 2)], 9);
    expect(directory.revision).toBe(9);
    expect(ids(directory)).toEqual(['b', 'c', 'd']);
    expect(ids(directory, { skillTags: ['x'] })).toEqual(['c']);
    expect(changes).toEqual(['removed a deregistered', 'updated c', 'added d']);
  });

  it('stops telling who asked for that', () => {
    const directory = new Directory();
    const seen: number[] = [];
    const stop = directory.onChange(() => seen.push(directory.revision));
    directory.apply(put(1, agent('a', 1)));
    stop();
    directory.apply(put(2, agent('b', 2)));
    expect(seen).toEqual([1]);
  });
});
