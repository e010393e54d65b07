const A2A = 'a2a.';
const NODE_ENDINGS = ['.dispatch.node', '.liveness.flush', '.acks', '.beats', '.nodes'];

/** The subject with its variable token named, as traces want it: few names for many subjects. */
export function destinationTemplate(subject: string): string {
  if (subject.startsWith(A2A)) return 'a2a.{agent_id}';
  const last = subject.lastIndexOf('.');
  const rest = subject.slice(0, last);
  if (NODE_ENDINGS.some((ending) => rest.endsWith(ending))) return `${rest}.{node_id}`;
  return rest.includes('.events.') ? `${rest}.{agent_id}` : subject;
}
