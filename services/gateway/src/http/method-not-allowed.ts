import type { FastifyInstance, HTTPMethods } from 'fastify';

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Answers every other method on `url` with 405 and what is allowed; OPTIONS with 204 and the same. */
export function allowOnly(app: FastifyInstance, url: string, allowed: readonly HTTPMethods[]): void {
  const allow = allowed.join(', ');
  app.route({
    method: METHODS.filter((method) => !allowed.includes(method)),
    url,
    // Before the body is looked at: what it is like does not matter.
    onRequest: (request, reply) => {
      void reply.header('allow', allow);
      if (request.method === 'OPTIONS') void reply.code(204).send();
      else void reply.code(405).send({ error: `${request.method} is not allowed here; use ${allow}` });
    },
    handler: hijacked,
  });
}

/** Never reached: the request was answered before. */
export function hijacked(): never {
  throw new Error('the request should have been answered by its onRequest hook');
}
