// oxlint-disable oxc/no-async-endpoint-handlers -- a rule for Express; Fastify awaits its handlers
import { projectKubemqCard } from '@patchbay/agent-card';
import type { ByteBudget } from '@patchbay/core';
import type { AgentFilter } from '@patchbay/directory';
import { AGENT_ID_RULE, formatTimestamp, isAgentId, parseStrictJson, PatchbayError } from '@patchbay/core';
import { BusHeader } from '@patchbay/bus';
import type { CallOptions } from '@patchbay/service-api';
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { explainContentType, isJsonContentType } from './content-type.js';
import type { HttpFrontOptions } from './front-options.js';
import { allowOnly } from './method-not-allowed.js';
import { pathSegment } from './path-segment.js';
import { describeRegistryError } from './registry-error.js';
import { readRequestBody } from './request-body.js';
import { traceOf } from './trace-hook.js';

/** `/agents…`: the registry as KubeMQ's clients know it. Writes go to the service, reads come from the directory. */
export function registryRoutes(
  app: FastifyInstance,
  options: HttpFrontOptions & { readonly budget: ByteBudget },
): void {
  const { directory, registry, liveness, settings, budget } = options;

  // Cards are stored as they came, so bodies stay bytes here.
  app.removeAllContentTypeParsers();
  const limits = { maxBytes: settings.maxCardBytes, budget };
  app.addContentTypeParser('*', (_request, incoming, done) => {
    // Cards are small and soon with the registry: their room is given back as soon as they are read.
    readRequestBody({ request: incoming, response: incoming }, limits, (body) => {
      // Nobody is there to be answered when the client has left.
      if (body.kind === 'complete') done(null, body.bytes);
      else if (body.kind === 'no_room') done(budget.refusal());
      else if (body.kind === 'too_large')
        done(new PatchbayError('request_too_large', `the body is over ${limits.maxBytes} bytes`));
    });
  });

  app.post('/agents/register', { onRequest: refuseOtherContent }, async (request) => {
    const agent = await registry.register(jsonBody(request), 'kubemq', callOptions(request));
    return projectKubemqCard(agent);
  });

  app.get<{ Querystring: Record<string, string | string[]> }>('/agents', async (request) =>
    directory.list(readFilter(request.query)).map(projectKubemqCard),
  );

  app.get('/agents/:id', async (request) => {
    const agent = directory.get(pathSegment(request.raw.url ?? '', 2));
    if (agent === undefined) throw new PatchbayError('agent_not_found', 'agent not found');
    return projectKubemqCard(agent);
  });

  app.post('/agents/heartbeat', { onRequest: refuseOtherContent }, async (request, reply) => {
    const agentId = readAgentId(request);
    try {
      const { lastSeenMs } = await liveness.heartbeat(agentId, callOptions(request));
      // So that a read through this node sees it at once.
      directory.touch(agentId, lastSeenMs);
      return { ok: true, agent_id: agentId, last_seen: formatTimestamp(lastSeenMs) };
    } catch (error) {
      const { code, body } = describeRegistryError(error);
      if (code !== 'agent_not_found') throw error;
      return reply.code(400).send(body); // KubeMQ's contract: not 404 here
    }
  });

  app.post('/agents/deregister', { onRequest: refuseOtherContent }, async (request) => {
    await registry.deregister(readAgentId(request), callOptions(request));
    return { ok: true };
  });

  app.delete('/agents/:id', async (request) => {
    const agentId = pathSegment(request.raw.url ?? '', 2);
    if (!isAgentId(agentId)) throw new PatchbayError('agent_not_found', 'agent not found');
    await registry.deregister(agentId, callOptions(request));
    return { ok: true };
  });

  allowOnly(app, '/agents', ['GET', 'HEAD']);
  for (const name of ['register', 'heartbeat', 'deregister'])
    allowOnly(app, `/agents/${name}`, ['POST', 'GET', 'HEAD', 'DELETE']);
  allowOnly(app, '/agents/:id', ['GET', 'HEAD', 'DELETE']);
}

/** Also keeps web pages out: a browser sends JSON to other origins only when they allow it. */
const refuseOtherContent: onRequestHookHandler = (request, _reply, done) => {
  const contentType = request.headers['content-type'];
  const isJson = isJsonContentType(contentType);
  done(isJson ? undefined : new PatchbayError('invalid_argument', explainContentType(contentType)));
};

/** Trace and caller for the service. */
function callOptions(request: FastifyRequest): CallOptions {
  const { traceparent, tracestate } = traceOf(request);
  return {
    headers: {
      [BusHeader.caller]: 'anonymous',
      [BusHeader.traceparent]: traceparent,
      ...(tracestate === undefined ? {} : { [BusHeader.tracestate]: tracestate }),
    },
  };
}

/** @throws PatchbayError parse_error */
function jsonBody(request: FastifyRequest): Buffer {
  const { body } = request;
  if (!Buffer.isBuffer(body) || body.length === 0)
    throw new PatchbayError('parse_error', 'the body is empty; send JSON');
  return body;
}

/** `agent_id` of a body. @throws PatchbayError parse_error, invalid_argument */
function readAgentId(request: FastifyRequest): string {
  const value = parseStrictJson(jsonBody(request));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new PatchbayError('invalid_argument', 'the body must be a JSON object');
  }
  const agentId = 'agent_id' in value ? value.agent_id : undefined;
  if (agentId === undefined)
    throw new PatchbayError('invalid_argument', 'agent_id is required: send {"agent_id": "…"}');
  if (!isAgentId(agentId)) {
    const got = JSON.stringify(agentId).slice(0, 140);
    throw new PatchbayError('invalid_argument', `agent_id must be ${AGENT_ID_RULE}; got ${got}`);
  }
  return agentId;
}

/** `skill_tags=a,b` and `limit=n`; a limit that is not a number over 0 does not count. */
function readFilter(query: Record<string, string | string[]>): AgentFilter {
  const { skill_tags: tags, limit } = query;
  const skillTags = [tags ?? []]
    .flat()
    .flatMap((text) => text.split(','))
    .map((tag) => tag.trim());
  const most = [limit ?? []].flat().at(-1);
  return {
    skillTags: skillTags.filter((tag) => tag !== ''),
    ...(most !== undefined && /^[1-9]\d{0,8}$/.test(most) ? { limit: Number(most) } : {}),
  };
}
