import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { AgentScript, ScriptedEvent, StreamScript } from './agent-script.js';

/** One request as a scripted agent acts on it. */
export interface Scene {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
  /** Aborts when the response is over or its connection gone. */
  readonly signal: AbortSignal;
}

const JSON_TYPE = { 'content-type': 'application/json' };

/** Carries out `script` for one request. */
export async function playScript(script: AgentScript, scene: Scene): Promise<void> {
  const { response } = scene;
  switch (script.kind) {
    case 'echo':
      respond(response, 200, { ...JSON_TYPE, ...script.headers }, echoOf(scene.body));
      return;
    case 'slow':
      await sleep(script.ms, undefined, { signal: scene.signal });
      respond(response, 200, JSON_TYPE, echoOf(scene.body));
      return;
    case 'fixed':
      respond(response, script.status ?? 200, { ...JSON_TYPE, ...script.headers }, script.body);
      return;
    case 'error':
      respond(
        response,
        script.status,
        { ...JSON_TYPE, ...script.headers },
        script.body ?? '{"error":"something broke"}',
      );
      return;
    case 'stream':
      return playStream(script, scene);
    case 'oversize':
      return sendOversize(script.bytes, script.chunked ?? false, scene);
    case 'silent':
      return;
    case 'dying':
      return die(script.when, scene);
    case 'html':
      respond(response, script.status ?? 200, { 'content-type': 'text/html' }, '<!DOCTYPE html><p>Not an agent</p>');
      return;
    case 'empty':
      respond(response, script.status ?? 200, { 'content-type': script.contentType ?? 'application/json' }, '');
      return;
    case 'firehose':
      return firehose(script.bytesPerSecond ?? 50_000_000, scene);
    case 'custom':
      return script.handle(scene.request, response, scene.body);
  }
}

type HeaderValues = Readonly<Record<string, string | readonly string[]>>;

function respond(response: ServerResponse, status: number, headers: HeaderValues, body: string | Uint8Array): void {
  writeHead(response, status, headers);
  response.end(body);
}

function writeHead(response: ServerResponse, status: number, headers: HeaderValues): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.writeHead(status);
}

function echoOf(body: Buffer): string {
  const { id, params } = JSON.parse(body.toString()) as { id?: unknown; params?: unknown };
  return JSON.stringify({ jsonrpc: '2.0', id, result: { echo: params } });
}

async function playStream(script: StreamScript, scene: Scene): Promise<void> {
  const { response, signal } = scene;
  writeHead(response, 200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', ...script.headers });
  response.flushHeaders();
  for (const event of script.events) {
    if (event.delayMs !== undefined) await sleep(event.delayMs, undefined, { signal });
    await writeText(formatEvent(event, script), script.chunks ?? 'whole', scene);
  }
  const ending = script.finally ?? 'end';
  if (ending === 'end') response.end();
  // What was written is to arrive first, so the reset waits for the kernel to have taken it.
  else if (ending === 'reset') response.write('', () => scene.request.socket.resetAndDestroy());
}

function formatEvent(event: ScriptedEvent, script: StreamScript): string {
  const colon = script.space === false ? ':' : ': ';
  const text = typeof event.data === 'string' ? event.data : JSON.stringify(event.data);
  const lines = [
    ...(event.name === undefined ? [] : [`event${colon}${event.name}`]),
    ...(event.id === undefined ? [] : [`id${colon}${event.id}`]),
    ...text.split('\n').map((line) => `data${colon}${line}`),
    '',
    '',
  ];
  return lines.join(script.lineEnd ?? '\n');
}

async function writeText(text: string, chunks: 'whole' | 'bytes', scene: Scene): Promise<void> {
  if (chunks === 'whole') return writeSlowly(Buffer.from(text), scene);
  for (const byte of Buffer.from(text)) {
    await writeSlowly(Buffer.of(byte), scene);
    await nextTurn();
  }
}

/** Writes, and waits while the reader is behind. */
async function writeSlowly(bytes: Buffer, { response, signal }: Scene): Promise<void> {
  signal.throwIfAborted();
  if (!response.write(bytes)) await once(response, 'drain', { signal });
}

async function sendOversize(bytes: number, chunked: boolean, scene: Scene): Promise<void> {
  const head = '{"jsonrpc":"2.0","id":1,"result":"';
  const tail = '"}';
  const length = chunked ? {} : { 'content-length': String(bytes) };
  writeHead(scene.response, 200, { ...JSON_TYPE, ...length });
  await writeSlowly(Buffer.from(head), scene);
  const filler = Buffer.alloc(65_536, 'x');
  for (let left = bytes - head.length - tail.length; left > 0; left -= filler.length) {
    await writeSlowly(filler.subarray(0, Math.min(left, filler.length)), scene);
  }
  scene.response.end(tail);
}

function die(when: 'before-reply' | 'mid-reply', { request, response }: Scene): void {
  if (when === 'before-reply') {
    request.socket.resetAndDestroy();
    return;
  }
  writeHead(response, 200, { ...JSON_TYPE, 'content-length': '1000' });
  response.write('{"jsonrpc":"2.0",', () => request.socket.resetAndDestroy());
}

async function firehose(bytesPerSecond: number, scene: Scene): Promise<void> {
  writeHead(scene.response, 200, { 'content-type': 'text/event-stream' });
  const event = Buffer.from(`data: {"filler":"${'x'.repeat(65_536)}"}\n\n`);
  const startedMs = performance.now();
  for (let sent = 0; ; sent += event.length) {
    await writeSlowly(event, scene);
    const aheadMs = (sent / bytesPerSecond) * 1000 - (performance.now() - startedMs);
    if (aheadMs > 1) await sleep(aheadMs, undefined, { signal: scene.signal });
  }
}
