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
 * sent `{"type":…,"payload":P}`. Clients exist that read the payload at the first depth, and others at the second.
 * @returns undefined when the data is no such thing: a JSON-RPC response, or not JSON; it is then relayed untouched
 */
export function wrapTaskData(name: string, data: Uint8Array): Buffer | undefined {
  const sent = parse(data);
  if (sent === undefined || isJsonRpcResponse(sent)) return undefined;
  const payload = isObject(sent) && Object.hasOwn(sent, 'payload') ? sent['payload'] : sent;
  return wrapTaskPayload(name, payload);
}

/** An event's payload in KubeMQ's envelope. */
export function wrapTaskPayload(name: string, payload: unknown): Buffer {
  const type = TYPES[name] ?? name.slice('task.'.length);
  const fields = isObject(payload) ? payload : {};
  return Buffer.from(JSON.stringify({ type, payload: { ...fields, type, payload } }));
}

function isJsonRpcResponse(value: unknown): boolean {
  return isObject(value) && value['jsonrpc'] === '2.0' && ('result' in value || 'error' in value);
}

function parse(data: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.length).toString()) as unknown;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
