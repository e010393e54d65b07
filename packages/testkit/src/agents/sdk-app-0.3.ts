import type { RequestListener } from 'node:http';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentCard, Message } from '@a2a-js/sdk-0.3';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk-0.3/server';
import type { AgentExecutor, ExecutionEventBus, RequestContext } from '@a2a-js/sdk-0.3/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk-0.3/server/express';
import express from 'express';

/** An application of the SDK's 0.3 line. */
export function createApp03(jsonRpcUrl: string, stepMs: number): RequestListener {
  const requestHandler = new DefaultRequestHandler(cardOf(jsonRpcUrl), new InMemoryTaskStore(), executor(stepMs));
  const app = express();
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/a2a/jsonrpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  return app;
}

function cardOf(url: string): AgentCard {
  return {
    protocolVersion: '0.3.0',
    name: 'SDK agent 0.3',
    description: 'Built with the official SDK',
    url,
    preferredTransport: 'JSONRPC',
    version: '1.0.0',
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: ['text'],
    defaultOutputModes: ['text'],
    skills: [{ id: 'work', name: 'Work', description: 'Works', tags: ['test'] }],
  };
}

function executor(stepMs: number): AgentExecutor {
  return {
    execute: (context, bus) =>
      textOf(context.userMessage) === 'direct' ? answer(context, bus) : work(context, bus, stepMs),
    cancelTask: (taskId, bus) => {
      bus.publish({ kind: 'status-update', taskId, contextId: taskId, status: { state: 'canceled' }, final: true });
      bus.finished();
      return Promise.resolve();
    },
  };
}

function answer({ contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
  const parts: Message['parts'] = [{ kind: 'text', text: `heard ${textOf(userMessage)}` }];
  bus.publish({ kind: 'message', messageId: randomUUID(), role: 'agent', contextId, parts });
  bus.finished();
  return Promise.resolve();
}

async function work(context: RequestContext, bus: ExecutionEventBus, stepMs: number): Promise<void> {
  const { taskId, contextId, userMessage } = context;
  bus.publish({ kind: 'task', id: taskId, contextId, status: { state: 'submitted' }, history: [userMessage] });
  await sleep(stepMs);
  bus.publish({ kind: 'status-update', taskId, contextId, status: { state: 'working' }, final: false });
  for (const [text, lastChunk] of [
    ['first ', false],
    ['second ☺', true],
  ] as const) {
    await sleep(stepMs);
    const artifact = { artifactId: 'result', parts: [{ kind: 'text' as const, text }] };
    bus.publish({ kind: 'artifact-update', taskId, contextId, artifact, append: lastChunk, lastChunk });
  }
  await sleep(stepMs);
  bus.publish({ kind: 'status-update', taskId, contextId, status: { state: 'completed' }, final: true });
  bus.finished();
}

function textOf(message: Message): string {
  return message.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
}
