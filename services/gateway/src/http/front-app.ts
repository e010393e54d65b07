import type { RequestListener, ServerResponse } from 'node:http';
import { fastify } from 'fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asPatchbayError, ByteBudget, COUNTED_FROM_BYTES, PatchbayError } from '@patchbay/core';
import { newTraceContext, traceIdOf } from '@patchbay/telemetry';
import { useOriginForm } from './absolute-target.js';
import { A2aEndpoint } from './a2a-endpoint.js';
import { a2aRoutes } from './a2a-routes.js';
import { callTarget } from './call-target.js';
import { agentCardRoute, platformCardRoute } from './card-routes.js';
import type { HttpFrontOptions, HttpPatience } from './front-options.js';
import { healthRoutes } from './health-routes.js';
import { createHttpServer } from './http-server.js';
import { describeRegistryError } from './registry-error.js';
import { findImproper } from './improper-request.js';
import type { ImproperRequest } from './improper-request.js';
import { registryRoutes } from './registry-routes.js';
import { guardReply, ReplyWriter } from './reply-writer.js';
import { addTraceHook, traceOf } from './trace-hook.js';

/** No part of a path is too long for the router: ids are checked by their own rule, with their own words. */
const MAX_PARAM_LENGTH = 100_000;

/** Everything between a request and an answer. */
export interface FrontApp {
  readonly handle: RequestListener;
  close(): Promise<void>;
}

/** Builds the front; listens nowhere. */
export async function buildFrontApp(
  options: HttpFrontOptions,
  patience: HttpPatience,
  ownUrl: () => string,
): Promise<FrontApp> {
  const { settings, readiness, logger } = options;
  const budget = options.budget ?? new ByteBudget();
  const replies = new ReplyWriter({ ...patience, budget, isDraining: () => readiness.isDraining });
  const endpoint = new A2aEndpoint({ ...options, budget }, replies);

  const app = fastify({
    // The front listens itself, on several addresses; this server never does.
    serverFactory: (handler) => createHttpServer(handler, patience),
    trustProxy: settings.trustProxy.length === 0 ? false : [...settings.trustProxy],
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    frameworkErrors: (error, request, reply) => {
      // The only one that is left: a path with a broken percent escape.
      reply.hijack();
      const body = Buffer.from(JSON.stringify({ error: error.message }));
      replies.write(reply.raw, { status: 400, traceId: traceIdOf(traceOf(request)), body });
    },
  });

  addTraceHook(app);
  app.addHook('onRequest', (request, reply, done) => {
    guardWhenEnded(reply.raw, patience.stalledReplyMs, budget);
    if (readiness.isDraining) void reply.header('connection', 'close');
    // Before the body is looked at: what it is like does not matter where nothing is served.
    if (request.is404) notFound(request, reply);
    else done();
  });
  app.addHook('onSend', (_request, _reply, payload, done) => {
    if (typeof payload !== 'string' || payload.length <= COUNTED_FROM_BYTES) return done(null, payload);
    // As bytes it is held once; of a text the socket keeps a copy beside it.
    if (budget.hasRoom(payload.length)) return done(null, Buffer.from(payload));
    return done(budget.refusal());
  });
  app.setNotFoundHandler(notFound);
  app.setErrorHandler(async (error, _request, reply) => {
    const { code, status, body } = describeRegistryError(translateFastifyError(error));
    if (code === 'internal') logger.error({ err: error }, 'a request failed');
    return reply.code(status).send(body);
  });

  const refuse = (response: ServerResponse, { status, error }: ImproperRequest): void => {
    // Where its body ends may not be clear.
    response.shouldKeepAlive = false;
    const body = Buffer.from(JSON.stringify({ error }));
    replies.write(response, { status, traceId: traceIdOf(newTraceContext()), body });
  };

  healthRoutes(app, options);
  platformCardRoute(app, options, ownUrl);
  if (settings.a2aEnabled) {
    await app.register(async (scope) => registryRoutes(scope, { ...options, budget }));
    a2aRoutes(app, endpoint);
    agentCardRoute(app, options, ownUrl);
  }
  await app.ready();
  return {
    handle: (request, response) => {
      const improper = findImproper(request);
      if (improper !== undefined) return refuse(response, improper);
      useOriginForm(request);
      const agentId = settings.a2aEnabled ? callTarget(request) : undefined;
      if (agentId === undefined) app.routing(request, response);
      else endpoint.post(request, response, agentId);
      return undefined;
    },
    close: async () => {
      endpoint.close();
      await app.close();
    },
  };
}

/** Fastify's errors about a request, in our vocabulary; everything else as it is. */
function translateFastifyError(error: unknown): unknown {
  if (error instanceof PatchbayError || !(error instanceof Error) || !('statusCode' in error)) return error;
  const { statusCode, message } = error;
  const isClients = typeof statusCode === 'number' && statusCode < 500;
  return isClients ? new PatchbayError('invalid_argument', message, { cause: error }) : asPatchbayError(error);
}

/** A large answer that the client does not take must not stay for ever. */
function guardWhenEnded(response: ServerResponse, stalledMs: number, budget: ByteBudget): void {
  response.once('prefinish', () => guardReply(response, stalledMs, budget));
}

function notFound(request: FastifyRequest, reply: FastifyReply): void {
  void reply.code(404).send({ error: `nothing is served at ${request.method} ${shown(request.raw.url ?? '')}` });
}

function shown(url: string): string {
  return url.length > 200 ? `${url.slice(0, 200)}…` : url;
}
