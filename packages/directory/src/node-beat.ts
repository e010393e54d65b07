/** A node's own sign of life, published once a second. Plain JSON; unknown members are for newer nodes. */
export interface NodeBeat {
  readonly v: 1;
  readonly node_id: string;
  /** ULID of the process's start: tells a restart from the same run, and which of two runs is the later. */
  readonly incarnation: string;
  /** Version of the program. */
  readonly version: string;
  /** Names of the services that it runs. */
  readonly services: readonly string[];
  /** Revision up to which its directory holds everything. */
  readonly applied_revision: number;
  /** Which dispatch members its shares of the agents' limits are computed from; 0 when it dispatches no calls. */
  readonly epoch: number;
  /** How often it gave up its shares because it had stood still for too long. Absent: never. */
  readonly rejoins?: number;
  readonly draining: boolean;
  /** Calls of its busiest agent that it could take on now; more of every other. */
  readonly free_slots: number;
  /** Whether its link to the other nodes is up. */
  readonly bus: boolean;
  /** Whether it reaches the database; true for a node that needs none. */
  readonly store: boolean;
}

/** What a node says of itself beside what membership knows. */
export type NodeReport = Pick<NodeBeat, 'epoch' | 'rejoins' | 'draining' | 'free_slots' | 'store'>;

/** Whether a node takes calls of agents, or still has some in hand. */
export function isDispatching(beat: NodeBeat): boolean {
  return beat.epoch !== 0 && beat.services.includes('dispatch');
}

/** A node that was heard of lately. */
export interface Member {
  readonly beat: NodeBeat;
  /** Silent for 2 s: it may be stopped or cut off, and is not waited for. */
  readonly isSuspect: boolean;
}
