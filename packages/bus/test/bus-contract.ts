import type { BusAdapter } from './bus-adapter.js';
import { callContract } from './call-contract.js';
import { cancellationContract } from './cancellation-contract.js';
import { drainContract } from './drain-contract.js';
import { publishContract } from './publish-contract.js';
import { streamContract } from './stream-contract.js';

/** Everything that the docstrings of the port promise; every adapter passes it. */
export function busContract(adapter: BusAdapter): void {
  publishContract(adapter);
  callContract(adapter);
  streamContract(adapter);
  cancellationContract(adapter);
  drainContract(adapter);
}
