import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { PatchbayProcess } from '@patchbay/testkit';

/** A JSON-RPC answer as tests look at it. */
export interface RpcAnswer {
  readonly id?: unknown;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** Registers an agent. @throws Error when the node does not answer 200. */
export async function registerAgent(
  node: Pick<PatchbayProcess, 'url'>,
  agentId: string,
  url: string,
  extra: Record<string, unknown> = {},
): Promise<Record<string, unknown>> {
  const response = await fetch(`${node.url}/agents/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent_id: agentId, name: agentId, url, ...extra }),
    signal: AbortSignal.timeout(15_000),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`registration of ${agentId}: ${response.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

/** Calls an agent once. */
export async function callAgent(
  node: Pick<PatchbayProcess, 'url'>,
  agentId: string,
  method = 'message/send',
  params: unknown = {},
  id: unknown = 1,
): Promise<RpcAnswer> {
  const response = await fetch(`${node.url}/a2a/${agentId}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
    signal: AbortSignal.timeout(60_000),
  });
  return (await response.json()) as RpcAnswer;
}

/** Opens a stream on a raw socket and resolves when its first event has arrived. */
export async function openRawStream(
  node: Pick<PatchbayProcess, 'url'>,
  agentId: string,
  options: { readonly untilText?: string; readonly allowHalfOpen?: boolean } = {},
): Promise<Socket> {
  const { hostname, port } = new URL(node.url);
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} });
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: options.allowHalfOpen ?? false });
  socket.on('error', () => {});
  socket.write(
    `POST /a2a/${agentId} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  const untilText = options.untilText ?? '\n\n';
  await new Promise<void>((resolve, reject) => {
    let seen = '';
    const onData = (chunk: Buffer): void => {
      seen += chunk.toString('latin1');
      const end = seen.indexOf(untilText);
      if (end === -1) return;
      socket.off('data', onData);
      socket.pause();
      // What came in the same piece belongs to whoever reads on.
      const rest = seen.slice(end + untilText.length);
      if (rest !== '') socket.unshift(Buffer.from(rest, 'latin1'));
      resolve();
    };
    socket.on('data', onData);
    socket.once('close', () => reject(new Error(`the stream closed before its first event: ${seen}`)));
  });
  return socket;
}
