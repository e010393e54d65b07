import { startNatsServer } from '@patchbay/testkit';
import type { NatsServer } from '@patchbay/testkit';
import { afterAll, beforeAll } from 'vitest';
import { busContract } from './bus-contract.js';
import { createNatsPair } from './nats-pair.js';

let server: NatsServer;

beforeAll(async () => {
  server = await startNatsServer();
});

afterAll(async () => {
  await server.stop();
});

busContract({ name: 'NatsBus', createPair: () => createNatsPair([server.url]) });
