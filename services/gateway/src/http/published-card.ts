import { projectKubemqCard } from '@patchbay/agent-card';
import type { RegisteredAgent } from '@patchbay/agent-card';

/**
 * The card of an agent as the gateway publishes it: every address in it is the gateway's, since that is where clients
 * are to call. Members that only make sense with the agent's own addresses are left out; a signature would not verify.
 */
export function publishedCard(agent: RegisteredAgent, url: string): Record<string, unknown> {
  const { signatures: _, ...card } = projectKubemqCard(agent);
  const published: Record<string, unknown> = { ...card, url };
  rewriteInterfaces(published, 'supportedInterfaces', 'protocolBinding', url);
  rewriteInterfaces(published, 'additionalInterfaces', 'transport', url);
  if ('preferredTransport' in published) published['preferredTransport'] = 'JSONRPC';
  return published;
}

/** Absent means JSON-RPC in cards of 0.3. */
function isJsonRpc(binding: unknown): boolean {
  return binding === undefined || (typeof binding === 'string' && binding.toUpperCase() === 'JSONRPC');
}

/** Keeps the JSON-RPC entries of a list of interfaces, at the gateway's address: the only binding it speaks. */
function rewriteInterfaces(card: Record<string, unknown>, member: string, binding: string, url: string): void {
  const interfaces = card[member];
  if (!Array.isArray(interfaces)) return;
  card[member] = interfaces
    .filter((entry): entry is Record<string, unknown> => typeof entry === 'object' && entry !== null)
    .filter((entry) => isJsonRpc(entry[binding]))
    .map((entry) => ({ ...entry, url }));
}
