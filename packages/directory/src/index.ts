export { Directory } from './directory.js';
export type { AgentFilter, DirectoryChange } from './directory.js';
export { DirectoryReplica } from './directory-replica.js';
export type { DirectoryReplicaOptions } from './directory-replica.js';
export { Membership } from './membership.js';
export type { MembershipOptions } from './membership.js';
export { isDispatching } from './node-beat.js';
export type { Member, NodeBeat, NodeReport } from './node-beat.js';
