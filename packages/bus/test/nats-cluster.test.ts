import { startNatsCluster } from '@patchbay/testkit';
import type { NatsCluster } from '@patchbay/testkit';
import { afterAll, beforeAll } from 'vitest';
import { busContract } from './bus-contract.js';
import { createNatsPair } from './nats-pair.js';

let cluster: NatsCluster;

beforeAll(async () => {
  cluster = await startNatsCluster(3);
});

afterAll(async () => {
  await cluster.stop();
});

busContract({ name: 'NatsBus on a cluster', createPair: () => createNatsPair(cluster.urls) });
