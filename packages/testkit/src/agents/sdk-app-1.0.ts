import type { RequestListener } from 'node:http';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import type { AgentExecutor, ExecutionEventBus, RequestContext } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

/** An application of the SDK's 1.x line. It speaks A2A 1.0 alone. */
export function createApp10(jsonRpcUrl: string, stepMs: number): RequestListener {
  const requestHandler = new DefaultRequestHandler(cardOf(jsonRpcUrl), new InMemoryTaskStore(), executor(stepMs));
  const app = express();
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/a2a/jsonrpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  return app;
}

function cardOf(url: string): AgentCard {
  return AgentCard.fromJSON({
    name: 'SDK agent 1.0',
    description: 'Built with the official SDK',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    version: '1.0.0',
    capabilities: { streaming: true, pushNotifications: false, extensions: [{ uri: 'urn:test:extension' }] },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'work', name: 'Work', description: 'Works', tags: ['test'] }],
  });
}

function executor(stepMs: number): AgentExecutor {
  return {
    execute: (context, bus) =>
      textOf(context.userMessage) === 'direct' ? answer(context, bus) : work(context, bus, stepMs),
    cancelTask: (taskId, bus) => {
      bus.publish(statusOf(taskId, taskId, 'TASK_STATE_CANCELED'));
      bus.finished();
      return Promise.resolve();
    },
  };
}

function answer({ contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
  const parts = [{ text: `heard ${textOf(userMessage)}` }];
  const message = Message.fromJSON({ messageId: randomUUID(), role: 'ROLE_AGENT', contextId, parts });
  bus.publish(AgentEvent.message(message));
  bus.finished();
  return Promise.resolve();
}

async function work(context: RequestContext, bus: ExecutionEventBus, stepMs: number): Promise<void> {
  const { taskId, contextId, userMessage } = context;
  const status = { state: 'TASK_STATE_SUBMITTED' };
  const task = Task.fromJSON({ id: taskId, contextId, status, history: [Message.toJSON(userMessage)] });
  bus.publish(AgentEvent.task(task));
  await sleep(stepMs);
  bus.publish(statusOf(taskId, contextId, 'TASK_STATE_WORKING'));
  for (const [text, lastChunk] of [
    ['first ', false],
    ['second ☺', true],
  ] as const) {
    await sleep(stepMs);
    const artifact = { artifactId: 'result', parts: [{ text }] };
    const update = TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact, append: lastChunk, lastChunk });
    bus.publish(AgentEvent.artifactUpdate(update));
  }
  await sleep(stepMs);
  bus.publish(statusOf(taskId, contextId, 'TASK_STATE_COMPLETED'));
  bus.finished();
}

function statusOf(taskId: string, contextId: string, state: string): ReturnType<typeof AgentEvent.statusUpdate> {
  return AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status: { state } }));
}

function textOf(message: Message): string {
  return message.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
}
