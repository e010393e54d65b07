import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** One request as the agent received it. */
export interface ReceivedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An agent as KubeMQ's users write them: `POST /` only, on IPv4, addressed as `localhost`. */
export interface KubemqAgent extends AsyncDisposable {
  readonly url: string;
  readonly received: ReceivedRequest[];
  /** Streams that ended because the other side hung up. */
  readonly hangUps: () => number;
}

type Answer = (request: Rpc, response: ServerResponse) => void | Promise<void>;

interface Rpc {
  readonly id?: unknown;
  readonly method: string;
  readonly params?: Record<string, unknown>;
}

/** Starts an agent that answers each call with `answer`. */
export async function startKubemqAgent(answer: Answer): Promise<KubemqAgent> {
  const received: ReceivedRequest[] = [];
  let hangUps = 0;
  const server: Server = createServer((request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) hangUps += 1;
    });
    void serve(request, response, received, answer);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://localhost:${port}/`,
    received,
    hangUps: () => hangUps,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  received: ReceivedRequest[],
  answer: Answer,
): Promise<void> {
  if (request.method !== 'POST') {
    response.writeHead(405).end();
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString();
  received.push({ headers: request.headers, body });
  await answer(JSON.parse(body) as Rpc, response);
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Answers with the params it got. */
export const echo: Answer = (rpc, response) => {
  json(response, 200, { jsonrpc: '2.0', id: rpc.id, result: { echo: rpc.params ?? null, method: rpc.method } });
};

/** Echoes after `ms`. */
export function slow(ms: number): Answer {
  return async (rpc, response) => {
    await delay(ms);
    if (!response.destroyed) await echo(rpc, response);
  };
}

/** Answers with an HTTP status and the body of KubeMQ's error agent, whose `error` is a string. */
export function failing(status: number): Answer {
  return (_rpc, response) => json(response, status, { error: `simulated ${status}` });
}

/** Answers 200 with `bytes` of plain text that is not JSON. */
export function oversize(bytes: number): Answer {
  return (_rpc, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    const piece = Buffer.alloc(64 * 1024, 'x');
    let left = bytes;
    const more = (): void => {
      while (left > 0 && !response.destroyed) {
        const size = Math.min(left, piece.length);
        left -= size;
        if (!response.write(piece.subarray(0, size))) {
          response.once('drain', more);
          return;
        }
      }
      response.end();
    };
    more();
  };
}

/** Three status updates and a final event, `pauseMs` apart. */
export function streaming(pauseMs = 10, count = 3): Answer {
  return async (_rpc, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let n = 1; n <= count; n += 1) {
      if (response.destroyed) return;
      response.write(
        `event: task.status\ndata: ${JSON.stringify({ type: 'status_update', payload: { progress: n, total: count } })}\n\n`,
      );
      await delay(pauseMs);
    }
    response.write(
      `event: task.done\ndata: ${JSON.stringify({ type: 'done', payload: { final_result: 'ok', event_count: count } })}\n\n`,
    );
    response.end();
  };
}
