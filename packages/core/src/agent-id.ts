/** What an agent id is on the bus and under `/a2a/`: one NATS subject token, so no client can forge a wildcard. */
export const AGENT_ID_PATTERN = /^[a-z0-9-]{2,128}$/;

/** The rule of {@link AGENT_ID_PATTERN} in words, for error messages. */
export const AGENT_ID_RULE = '2-128 characters of a-z, 0-9 and "-"';

/** Whether `text` is a legal agent id. */
export function isAgentId(text: unknown): text is string {
  return typeof text === 'string' && AGENT_ID_PATTERN.test(text);
}
