import { BusHeader } from '@patchbay/bus';
import type { Headers, Message } from '@patchbay/bus';
import { startSdkAgent } from '@patchbay/testkit';
import type { SdkAgent } from '@patchbay/testkit';
import { describe, expect, test } from 'vitest';
import { DispatchRig } from './dispatch-rig.js';

interface Version {
  readonly name: '0.3' | '1.0';
  readonly send: string;
  readonly stream: string;
  readonly getTask: string;
  /** The user message as this version writes it. */
  message(text: string): unknown;
  readonly headers: Headers;
}

const VERSIONS: readonly Version[] = [
  {
    name: '0.3',
    send: 'message/send',
    stream: 'message/stream',
    getTask: 'tasks/get',
    message: (text) => ({ kind: 'message', role: 'user', messageId: 'm-1', parts: [{ kind: 'text', text }] }),
    headers: { 'Patchbay-Fwd-X-A2A-Extensions': 'urn:test:extension' },
  },
  {
    name: '1.0',
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    getTask: 'GetTask',
    message: (text) => ({ role: 'ROLE_USER', messageId: 'm-1', parts: [{ text }] }),
    headers: { [BusHeader.a2aVersion]: '1.0', [BusHeader.a2aExtensions]: 'urn:test:extension' },
  },
];

/** Written by hand, with spaces no serialiser would choose, so that a re-serialised body would show. */
function bodyOf(method: string, params: unknown, id: string): string {
  return `{ "jsonrpc" : "2.0",\n "id":${id} , "method":"${method}","params":  ${JSON.stringify(params)} }`;
}

async function world(version: Version): Promise<{ rig: DispatchRig; agent: SdkAgent } & AsyncDisposable> {
  const agent = await startSdkAgent(version.name, { stepMs: 5 });
  const rig = new DispatchRig();
  rig.register('sdk-01', agent.url);
  return {
    rig,
    agent,
    async [Symbol.asyncDispose]() {
      await rig[Symbol.asyncDispose]();
      await agent[Symbol.asyncDispose]();
    },
  };
}

function textOf(message: Message): string {
  return Buffer.from(message.body).toString();
}

describe.each(VERSIONS)('an agent of the official SDK that speaks $name', (version) => {
  const { headers } = version;

  test('answers a message and a task, bodies untouched both ways', async () => {
    await using here = await world(version);
    for (const [id, text] of [
      ['1', 'direct'],
      ['"one"', 'a task'],
      ['1753000000000', 'direct'],
    ] as const) {
      const body = bodyOf(version.send, { message: version.message(text) }, id);
      const answer = await here.rig.call('sdk-01', body, { headers });
      const exchange = here.agent.exchanges.at(-1);
      expect(exchange?.requestBody.toString()).toBe(body);
      expect(textOf(answer)).toBe(exchange?.responseBody.toString());
      const reply = JSON.parse(textOf(answer)) as { id: unknown; result?: unknown };
      expect(JSON.stringify(reply.id)).toBe(id);
      expect(JSON.stringify(reply.result)).toContain(text === 'direct' ? 'heard direct' : 'second ☺');
    }
  });

  test('streams a task: every event once, in order, as it was sent', async () => {
    await using here = await world(version);
    const body = bodyOf(version.stream, { message: version.message('a task') }, '"s-1"');
    const { parts, error } = await here.rig.readAll('sdk-01', body, { headers });
    expect(error).toBeUndefined();
    expect(parts).toHaveLength(5);
    const exchange = here.agent.exchanges.at(-1);
    expect(exchange?.requestBody.toString()).toBe(body);
    const sent = exchange?.responseBody
      .toString()
      .split('\n')
      .filter((line) => line.startsWith('data: '));
    expect(parts.map(({ data }) => `data: ${data}`)).toEqual(sent);
    for (const { data } of parts) expect(JSON.parse(data)).toMatchObject({ id: 's-1' });
    expect(parts.at(-1)?.data).toMatch(/completed|TASK_STATE_COMPLETED/);
  });

  test("relays the agent's own errors, unary and on a stream call", async () => {
    await using here = await world(version);
    const body = bodyOf(version.getTask, { id: 'no-such-task' }, '9');
    const answer = JSON.parse(textOf(await here.rig.call('sdk-01', body, { headers }))) as object;
    expect(answer).toMatchObject({ id: 9, error: { code: -32001 } });

    const wrong = bodyOf(version.stream, { message: { role: 'x' } }, '10');
    const { parts, error } = await here.rig.readAll('sdk-01', wrong, { headers });
    expect(error).toBeUndefined();
    expect(parts).toHaveLength(1);
    expect(JSON.parse(parts[0]?.data ?? '')).toMatchObject({ id: 10, error: { code: expect.any(Number) as number } });
  });

  test('says in words of ours that a message is too large for it, and shows no page of its own', async () => {
    await using here = await world(version);
    const body = bodyOf(version.send, { message: version.message('x'.repeat(120_000)) }, '1');
    const error = await here.rig.refusal('sdk-01', body, { headers });
    expect(error.body?.error.message).toBe('internal error: agent answered HTTP 413');
  });

  test('is told the extensions and the version that the caller named', async () => {
    await using here = await world(version);
    await here.rig.call('sdk-01', bodyOf(version.send, { message: version.message('direct') }, '1'), { headers });
    const got = here.agent.exchanges.at(-1)?.headers ?? {};
    expect(got[version.name === '0.3' ? 'x-a2a-extensions' : 'a2a-extensions']).toBe('urn:test:extension');
    expect(got['a2a-version']).toBe(version.name === '0.3' ? undefined : '1.0');
  });
});
