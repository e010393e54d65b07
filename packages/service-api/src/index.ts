export { decodeBody, encodeBody } from './json-body.js';
export { LivenessClient, serveBeatFlush, serveLiveness } from './liveness-api.js';
export type { BeatBatch, HeartbeatReply, LivenessHandlers } from './liveness-api.js';
export { RegistryClient, serveRegistry } from './registry-api.js';
export type { CallOptions, ChangesChunk, RegistryHandlers } from './registry-api.js';
export { NO_ROSTER } from './service-subject.js';
export type { ServiceRoster } from './service-subject.js';
export { groupBySize, publishEvents } from './replication.js';
export type { ReplicaAck } from './replication.js';
