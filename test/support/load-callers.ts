import type { LoadCaller, Outcome } from './load-recorder.js';

/** A node's front, as far as callers care. */
export interface Front {
  /** Base URL. */
  readonly url: string;
}

const JSON_TYPE = { 'content-type': 'application/json' };
/** Time that a route of the registry may take: the gateway's own limit for a write. */
const REGISTRY_TIMEOUT_MS = 10_000;
const ANSWERED: Outcome = { kind: 'answered' };

/** Calls agents through a front, in turn, and checks that each echo is the one of its call. */
export function callsTo(front: Front, agentIds: readonly string[], timeoutSeconds = 3): LoadCaller {
  let count = 0;
  return {
    doing: 'call',
    front: front.url,
    timeoutMs: timeoutSeconds * 1_000,
    attempt: async (signal) => {
      const n = (count += 1);
      const agentId = agentIds[n % agentIds.length] ?? '';
      const params = { n, configuration: { timeout: timeoutSeconds } };
      const response = await fetch(`${front.url}/a2a/${agentId}`, {
        method: 'POST',
        // With a version errors carry their reason, and some a status of their own.
        headers: { ...JSON_TYPE, 'a2a-version': '1.0' },
        body: JSON.stringify({ jsonrpc: '2.0', id: n, method: 'SendMessage', params }),
        signal,
      });
      const answer = (await response.json()) as {
        id?: unknown;
        result?: { echo?: { n?: unknown } };
        error?: { code: number; message: string; data?: { reason?: string }[] };
      };
      if (answer.id !== n) return { kind: 'wrong', message: `the answer is for ${String(answer.id)}, not ${n}` };
      const { error } = answer;
      if (error !== undefined) {
        return { kind: 'error', code: error.data?.[0]?.reason ?? String(error.code), message: error.message };
      }
      const echoed = answer.result?.echo?.n;
      return echoed === n ? ANSWERED : { kind: 'wrong', message: `echo of ${String(echoed)}, not ${n}` };
    },
  };
}

/** Registers ever new agents through a front; the ids of those that were answered 200 go to `acknowledged`. */
export function registrationsAt(front: Front, prefix: string, acknowledged: string[], url: string): LoadCaller {
  let count = 0;
  return registryCaller('register', front, async (signal) => {
    const agentId = `${prefix}-${(count += 1)}`;
    const response = await postJson(front, '/agents/register', { agent_id: agentId, name: agentId, url }, signal);
    const outcome = await outcomeOf(response);
    if (outcome.kind === 'answered') acknowledged.push(agentId);
    return outcome;
  });
}

/** Sends heartbeats of agents through a front, in turn. */
export function heartbeatsAt(front: Front, agentIds: readonly string[]): LoadCaller {
  let count = 0;
  return registryCaller('heartbeat', front, async (signal) => {
    const agentId = agentIds[(count += 1) % agentIds.length] ?? '';
    return await outcomeOf(await postJson(front, '/agents/heartbeat', { agent_id: agentId }, signal));
  });
}

/** Reads lists of a front. */
export function listsAt(front: Front): LoadCaller {
  return registryCaller('list', front, async (signal) =>
    outcomeOf(await fetch(`${front.url}/agents?limit=10`, { signal })),
  );
}

/** Reads cards of a front, as A2A clients do. */
export function cardsAt(front: Front, agentIds: readonly string[]): LoadCaller {
  let count = 0;
  return registryCaller('card', front, async (signal) => {
    const agentId = agentIds[(count += 1) % agentIds.length] ?? '';
    return await outcomeOf(await fetch(`${front.url}/a2a/${agentId}/.well-known/agent-card.json`, { signal }));
  });
}

function registryCaller(doing: string, front: Front, attempt: LoadCaller['attempt']): LoadCaller {
  return { doing, front: front.url, timeoutMs: REGISTRY_TIMEOUT_MS, attempt };
}

function postJson(front: Front, path: string, body: object, signal: AbortSignal): Promise<Response> {
  return fetch(`${front.url}${path}`, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body), signal });
}

async function outcomeOf(response: Response): Promise<Outcome> {
  const text = await response.text();
  if (response.status === 200) return ANSWERED;
  return { kind: 'error', code: String(response.status), message: text };
}
