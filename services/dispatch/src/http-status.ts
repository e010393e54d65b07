import type { AgentFailure } from './agent-failure.js';

/**
 * What an agent's HTTP status says; undefined for 2xx. The body of anything else is never relayed: it may be a stack
 * trace, and what mock agents put into `error` is not a JSON-RPC error. The words for 502, 503 and 504 are KubeMQ's.
 */
export function failureOfStatus(status: number): AgentFailure | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status === 504) return { code: 'deadline_exceeded', detail: 'agent answered HTTP 504' };
  if (status === 502 || status === 503) {
    return { code: 'agent_http_error', detail: `agent unavailable (HTTP ${status})` };
  }
  const isRedirect = status >= 300 && status < 400;
  const hint = isRedirect ? '; redirects are not followed, register the final URL' : '';
  return { code: 'agent_http_error', detail: `agent answered HTTP ${status}${hint}` };
}
