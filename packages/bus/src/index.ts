export type {
  Bus,
  Delivery,
  Exchange,
  Handler,
  Headers,
  Message,
  RequestOptions,
  StreamOptions,
  SubscribeOptions,
  Subscription,
} from './bus.js';
export { DeadlineExceededError, DisconnectedError, NoRespondersError, RemoteError } from './bus-error.js';
export { BusHeader } from './bus-header.js';
export type { BusStats } from './bus-stats.js';
export { MemoryBus } from './memory/memory-bus.js';
export type { MemoryBusOptions } from './memory/memory-bus.js';
export type { NatsConnectOptions } from './nats/connect-nats.js';
export { NatsBus } from './nats/nats-bus.js';
export type { NatsBusOptions } from './nats/nats-bus.js';
export { shareSignal } from './common-signal.js';
export { Subjects } from './subjects.js';
export { TracedBus } from './traced-bus.js';
