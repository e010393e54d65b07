import type { Front } from './load-callers.js';

/** What a route of the registry answered. */
export interface RegistryAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const LIMIT_MS = 15_000;

/** Registers an agent and says what the answer was, whatever it was. */
export function tryRegister(
  front: Front,
  agentId: string,
  url: string,
  extra: Record<string, unknown> = {},
): Promise<RegistryAnswer> {
  return send(front, 'POST', '/agents/register', { agent_id: agentId, name: agentId, url, ...extra });
}

/** Deregisters an agent. */
export function deregister(front: Front, agentId: string): Promise<RegistryAnswer> {
  return send(front, 'DELETE', `/agents/${agentId}`);
}

/** Sends a sign of life. */
export function heartbeat(front: Front, agentId: string): Promise<RegistryAnswer> {
  return send(front, 'POST', '/agents/heartbeat', { agent_id: agentId });
}

/** An agent's card as a front shows it. */
export function readAgent(front: Front, agentId: string): Promise<RegistryAnswer> {
  return send(front, 'GET', `/agents/${agentId}`);
}

/**
 * Registers many agents of one url through several fronts at the same time; again when a front says so with a 503, as
 * agents do. @throws Error unless each is answered 200 in the end
 */
export async function registerMany(
  fronts: readonly Front[],
  agentIds: readonly string[],
  url: string,
  inParallel = 64,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < agentIds.length; at = next++) {
      const front = fronts[at % fronts.length];
      const agentId = agentIds[at];
      if (front === undefined || agentId === undefined) return;
      let answer = await tryRegister(front, agentId, url);
      for (let again = 0; answer.status === 503 && again < 5; again += 1)
        answer = await tryRegister(front, agentId, url);
      if (answer.status !== 200) throw new Error(`registration of ${agentId}: ${JSON.stringify(answer)}`);
    }
  };
  await Promise.all(Array.from({ length: inParallel }, worker));
}

async function send(front: Front, method: string, path: string, body?: object): Promise<RegistryAnswer> {
  const response = await fetch(`${front.url}${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(LIMIT_MS),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
