import type { FastifyInstance, HTTPMethods } from 'fastify';
import type { A2aEndpoint } from './a2a-endpoint.js';
import { allowOnly, hijacked } from './method-not-allowed.js';
import { pathSegment } from './path-segment.js';

const POST_ONLY: readonly HTTPMethods[] = ['POST'];

/** What is beside the calls under `/a2a/{id}`; those are recognised before the router (see `callTarget`). */
export function a2aRoutes(app: FastifyInstance, endpoint: A2aEndpoint): void {
  app.get('/a2a/:id/stream', {
    exposeHeadRoute: false,
    // Answered by the endpoint itself: Fastify only finds the route.
    onRequest: (request, reply) => {
      reply.hijack();
      void endpoint.getStream(request.raw, reply.raw, pathSegment(request.raw.url ?? '', 2));
    },
    handler: hijacked,
  });
  allowOnly(app, '/a2a/:id', POST_ONLY);
  allowOnly(app, '/a2a/:id/stream', ['GET']);
}
