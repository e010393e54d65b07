import { randomUUID } from 'node:crypto';
import { AgentCard, SendMessageRequest, TaskState } from '@a2a-js/sdk';
import { ClientFactory } from '@a2a-js/sdk/client';
import type { AgentCard as AgentCard03, MessageSendParams } from '@a2a-js/sdk-0.3';
import { ClientFactory as ClientFactory03 } from '@a2a-js/sdk-0.3/client';
import { PatchbayProcess, startSdkAgent } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { registerAgent } from '../support/gateway-client.js';
import { startKubemqAgent } from '../support/kubemq-agents.js';

// The official SDK on both sides, in both generations, with nothing changed but the URL in the card.

let node: PatchbayProcess;

beforeAll(async () => {
  node = await PatchbayProcess.start();
});

afterAll(async () => {
  await node.stop();
});

describe('a 1.0 client and a 1.0 agent', () => {
  const request = (text: string): SendMessageRequest =>
    SendMessageRequest.fromJSON({ message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] } });

  async function clientOf(agentId: string): ReturnType<ClientFactory['createFromAgentCard']> {
    const card = AgentCard.fromJSON({
      name: agentId,
      description: 'through the gateway',
      version: '1',
      supportedInterfaces: [{ url: `${node.url}/a2a/${agentId}`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
      capabilities: { streaming: true },
      skills: [],
    });
    return new ClientFactory().createFromAgentCard(card);
  }

  test('send, stream and get', async () => {
    await using agent = await startSdkAgent('1.0', { stepMs: 10 });
    await registerAgent(node, 'sdk-v1', agent.url);
    const client = await clientOf('sdk-v1');

    const message = await client.sendMessage(request('direct'));
    expect('parts' in message && message.parts[0]?.content).toMatchObject({ $case: 'text', value: 'heard direct' });

    const events: string[] = [];
    let taskId = '';
    let last: TaskState | undefined;
    for await (const { payload } of client.sendMessageStream(request('work'))) {
      events.push(payload?.$case ?? '');
      if (payload?.$case === 'task') taskId = payload.value.id;
      if (payload?.$case === 'statusUpdate') last = payload.value.status?.state;
    }
    expect(events).toEqual(['task', 'statusUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate']);
    expect(last).toBe(TaskState.TASK_STATE_COMPLETED);

    const task = await client.getTask({ id: taskId, tenant: '' });
    expect(task.artifacts[0]?.parts.map(({ content }) => content?.value).join('')).toBe('first second ☺');
    for (const { headers } of agent.exchanges) expect(headers['a2a-version']).toBe('1.0');
  });

  test("the agent's own errors keep their type, the gateway's are generic and say why", async () => {
    await using agent = await startSdkAgent('1.0');
    await registerAgent(node, 'sdk-v1', agent.url);
    const client = await clientOf('sdk-v1');
    await expect(client.getTask({ id: 'no-such-task', tenant: '' })).rejects.toMatchObject({
      name: 'TaskNotFoundError',
    });
    const nobody = await clientOf('nobody-here');
    await expect(nobody.sendMessage(request('x'))).rejects.toThrow(/agent not found: nobody-here/);
    await expect(nobody.sendMessage(request('x'))).rejects.not.toMatchObject({ name: 'TaskNotCancelableError' });
  });

  test('a stream that is cut never looks finished', async () => {
    await using agent = await startKubemqAgent((rpc, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const result = { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } };
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: rpc.id, result })}\n\n`, () => response.destroy());
    });
    await registerAgent(node, 'sdk-cut', agent.url);
    const client = await clientOf('sdk-cut');
    const seen: string[] = [];
    const read = async (): Promise<void> => {
      for await (const { payload } of client.sendMessageStream(request('work'))) seen.push(payload?.$case ?? '');
    };
    await expect(read()).rejects.toThrow();
    expect(seen).toEqual(['task']);
  });
});

describe('a 0.3 client and a 0.3 agent', () => {
  const params = (text: string): MessageSendParams => ({
    message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }] },
  });

  async function clientOf(agentId: string): ReturnType<ClientFactory03['createFromAgentCard']> {
    const card: AgentCard03 = {
      name: agentId,
      description: 'through the gateway',
      version: '1',
      protocolVersion: '0.3.0',
      url: `${node.url}/a2a/${agentId}`,
      capabilities: { streaming: true },
      defaultInputModes: ['text'],
      defaultOutputModes: ['text'],
      skills: [],
    };
    return new ClientFactory03().createFromAgentCard(card);
  }

  test('send, stream and get', async () => {
    await using agent = await startSdkAgent('0.3', { stepMs: 10 });
    await registerAgent(node, 'sdk-v03', agent.url);
    const client = await clientOf('sdk-v03');

    const message = await client.sendMessage(params('direct'));
    expect(message).toMatchObject({ kind: 'message', parts: [{ kind: 'text', text: 'heard direct' }] });

    const kinds: string[] = [];
    let taskId = '';
    for await (const event of client.sendMessageStream(params('work'))) {
      kinds.push(event.kind);
      if (event.kind === 'task') taskId = event.id;
    }
    expect(kinds).toEqual(['task', 'status-update', 'artifact-update', 'artifact-update', 'status-update']);
    expect(await client.getTask({ id: taskId })).toMatchObject({ status: { state: 'completed' } });
  });

  test('a stream that is cut never looks finished', async () => {
    await using agent = await startKubemqAgent((rpc, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const result = { kind: 'task', id: 't', contextId: 'c', status: { state: 'working' } };
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: rpc.id, result })}\n\n`, () => response.destroy());
    });
    await registerAgent(node, 'sdk-cut-v03', agent.url);
    const client = await clientOf('sdk-cut-v03');
    const read = async (): Promise<void> => {
      for await (const event of client.sendMessageStream(params('work'))) expect(event.kind).toBe('task');
    };
    await expect(read()).rejects.toThrow();
  });

  test('events of the SDK pass through untouched', async () => {
    await using agent = await startSdkAgent('0.3');
    await registerAgent(node, 'sdk-v03', agent.url);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 'x-1', method: 'message/stream', params: params('work') });
    const response = await fetch(`${node.url}/a2a/sdk-v03`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    const data = (text: string): string[] => text.match(/^data: .*$/gm) ?? [];
    const received = data(await response.text());
    expect(received).toEqual(data(agent.exchanges.at(-1)?.responseBody.toString() ?? ''));
    expect(agent.exchanges.at(-1)?.requestBody.toString()).toBe(body);
    expect(received.length).toBe(5);
  });
});

test('a version that nobody speaks is refused in the words of A2A 1.0', async () => {
  const response = await fetch(`${node.url}/a2a/whoever`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '99.0' },
    body: '{"jsonrpc":"2.0","id":1,"method":"SendMessage"}',
  });
  expect(await response.json()).toMatchObject({
    id: 1,
    error: { code: -32009, data: [{ reason: 'VERSION_NOT_SUPPORTED' }] },
  });
});
