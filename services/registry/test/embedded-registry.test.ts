import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MemoryBus } from '@patchbay/bus';
import { openStore } from '@patchbay/store';
import type { OpenedStore } from '@patchbay/store';
import { silentLogger } from '@patchbay/telemetry';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { cardOf, startRegistryNode } from './registry-node.js';
import type { RegistryNode } from './registry-node.js';

let dataDir: string;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'patchbay-registry-'));
});

afterAll(async () => {
  await rm(dataDir, { recursive: true, force: true });
});

async function withNode(use: (node: RegistryNode, store: OpenedStore) => Promise<void>): Promise<void> {
  const store = await openStore({ kind: 'embedded', dataDir, logger: silentLogger() });
  const bus = new MemoryBus();
  try {
    await using node = await startRegistryNode({ bus, store: store.registry });
    await use(node, store);
  } finally {
    await bus.close();
    await store.close();
  }
}

it('finds its agents again after a restart on the embedded database', async () => {
  const before: unknown[] = [];
  await withNode(async (node) => {
    const cards = Array.from({ length: 700 }, (_, index) => cardOf(`agent-${index}`, { x: ['kept', null, 1.5] }));
    await Promise.all(cards.map((card) => node.client.register(card, 'kubemq')));
    await node.client.deregister('agent-0');
    await node.client.register(cards[1] ?? new Uint8Array(), 'kubemq');
    before.push(...node.directory.list());
  });
  await withNode(async (node, store) => {
    expect(node.directory.list()).toEqual(before);
    expect(node.directory.revision).toBe(702);
    expect((await store.registry.head()).agentCount).toBe(699);
    const again = await node.client.register(cardOf('agent-5'), 'kubemq');
    expect(again).toMatchObject({ ordinal: 6, revision: 703 });
  });
});
