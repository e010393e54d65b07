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
export { Subjects } from './subjects.js';
