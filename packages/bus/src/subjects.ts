/** The subjects of one cluster. `a2a.<agent_id>` is fixed; everything else lies under a configurable prefix. */
export class Subjects {
  readonly #prefix: string;

  /** @param prefix First token of our own subjects. Default `patchbay`. */
  constructor(prefix = 'patchbay') {
    this.#prefix = prefix;
  }

  /** Where an agent is called: request or stream; queue group `dispatch`. */
  agent(agentId: string): string {
    return `a2a.${agentId}`;
  }

  /** Operations of the registry: requests; queue group `registry`. */
  registry(operation: 'register' | 'deregister' | 'lookup' | 'changes'): string {
    return `${this.#prefix}.registry.${operation}`;
  }

  /** The same operations, of one node. */
  registryNode(nodeId: string, operation: Parameters<Subjects['registry']>[0]): string {
    return `${this.#prefix}.registry.node.${nodeId}.${operation}`;
  }

  /** Heartbeats: requests; queue group `liveness`. */
  get heartbeat(): string {
    return `${this.#prefix}.liveness.heartbeat`;
  }

  /** Heartbeats that one node is asked to note. */
  heartbeatNode(nodeId: string): string {
    return `${this.#prefix}.liveness.node.${nodeId}`;
  }

  /** Asks one node to write the beats that it still holds. */
  flushBeats(nodeId: string): string {
    return `${this.#prefix}.liveness.flush.${nodeId}`;
  }

  /** Calls one node's dispatch directly; the agent is named by a header. */
  dispatchNode(nodeId: string): string {
    return `${this.#prefix}.dispatch.node.${nodeId}`;
  }

  /** Single events for whoever wants to watch. */
  event(kind: 'registered' | 'updated' | 'deregistered' | 'expired' | 'status', agentId: string): string {
    return `${this.#prefix}.events.${kind}.${agentId}`;
  }

  /** Arrays of events in revision order, for the nodes' directories. */
  get replication(): string {
    return `${this.#prefix}.replication`;
  }

  /** The revision that a node has applied. */
  acks(nodeId: string): string {
    return `${this.#prefix}.acks.${nodeId}`;
  }

  /** Beats that a node answered, in batches. */
  beats(nodeId: string): string {
    return `${this.#prefix}.beats.${nodeId}`;
  }

  /** A node's own sign of life, once a second. */
  node(nodeId: string): string {
    return `${this.#prefix}.nodes.${nodeId}`;
  }
}
