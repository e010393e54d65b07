import { MemoryBus } from '@patchbay/bus';
import type { BusPair } from './bus-adapter.js';
import { busContract } from './bus-contract.js';

busContract({
  name: 'MemoryBus',
  createPair: (): Promise<BusPair> => {
    const handlerErrors: unknown[] = [];
    const bus = new MemoryBus({ onHandlerError: (error) => void handlerErrors.push(error) });
    const pair: BusPair = {
      caller: bus,
      responder: bus,
      handlerErrors,
      settle: () => bus.flush(),
      [Symbol.asyncDispose]: () => bus.close(),
    };
    return Promise.resolve(pair);
  },
});
