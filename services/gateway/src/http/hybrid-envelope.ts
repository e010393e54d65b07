import { scanJson } from '@patchbay/core';
import type { JsonMember } from '@patchbay/core';

/** `type` of the envelope for the events that KubeMQ names. */
const TYPES: Readonly<Record<string, string>> = {
  'task.status': 'status_update',
  'task.artifact': 'artifact',
  'task.done': 'done',
  'task.error': 'error',
};

/** Whether an event is named as KubeMQ's agents name theirs. */
export function isTaskEvent(name: string | undefined): name is string {
  return name !== undefined && name.startsWith('task.');
}

/** Whether nothing comes after the event. */
export function isTerminalTaskEvent(name: string): boolean {
  return name === 'task.done' || name === 'task.error';
}

/**
 * The data of one of KubeMQ's events in its envelope: `{"type":T,"payload":{…P,"type":T,"payload":P}}` where the agent
 * sent `{"type":…,"payload":P}`. Clients exist that read the payload at the first depth, and others at the second. P is
 * the agent's own text: a parser would not keep each of its numbers.
 * @returns undefined when the data is no such thing: a JSON-RPC response, or not JSON; it is then relayed untouched
 */
export function wrapTaskData(name: string, data: Uint8Array): Buffer | undefined {
  const sent = Buffer.from(data.buffer, data.byteOffset, data.length);
  const members = membersOf(sent);
  if (members === undefined || isJsonRpcResponse(members)) return undefined;
  const payload = members.findLast((member) => member.name === 'payload');
  return wrap(name, payload === undefined ? sent : payload.value);
}

/** An event's payload in KubeMQ's envelope. */
export function wrapTaskPayload(name: string, payload: unknown): Buffer {
  return wrap(name, Buffer.from(JSON.stringify(payload)));
}

function wrap(name: string, payload: Buffer): Buffer {
  const type = JSON.stringify(TYPES[name] ?? name.slice('task.'.length));
  const text = payload.toString();
  const fields = new Map<string, string>();
  for (const member of membersOf(payload) ?? []) fields.set(member.name, member.value.toString());
  fields.set('type', type).set('payload', text);
  const inner = Array.from(fields, ([key, value]) => `${JSON.stringify(key)}:${value}`);
  // Line ends can only stand between values; each would become a line of the event, and clients exist that read one.
  return Buffer.from(`{"type":${type},"payload":{${inner.join(',')}}}`.replace(/[\r\n]/g, ''));
}

/** A member of an object, its value as it stands in the text. */
interface Member {
  readonly name: string;
  readonly value: Buffer;
}

/** The members of an object; none of any other value. Undefined when the text is not JSON. */
function membersOf(json: Buffer): Member[] | undefined {
  const found: JsonMember[] = [];
  if (scanJson(json, Infinity, found) === 'invalid') return undefined;
  return found.map(({ nameStart, nameEnd, start, end }) => ({
    name: JSON.parse(json.toString('utf8', nameStart - 1, nameEnd + 1)) as string,
    value: json.subarray(start, end),
  }));
}

function isJsonRpcResponse(members: readonly Member[]): boolean {
  const names = new Set(members.map((member) => member.name));
  const version = members.findLast((member) => member.name === 'jsonrpc')?.value.toString();
  return version === '"2.0"' && (names.has('result') || names.has('error'));
}
