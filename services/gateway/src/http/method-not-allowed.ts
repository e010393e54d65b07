import type { FastifyInstance, HTTPMethods } from 'fastify';

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Answers every other method on `url` with 405 and what is allowed; OPTIONS with 204 and the same. */
export function allowOnly(app: FastifyInstance, url: string, allowed: readonly HTTPMethods[]): void {
  const allow = allowed.join(', ');
  app.route({
    method: METHODS.filter((method) => !allowed.includes(method)),
    url,
    handler: (request, reply) => {
      if (request.method === 'OPTIONS') return reply.code(204).header('allow', allow).send();
      return reply
        .code(405)
        .header('allow', allow)
        .send({ error: `${request.method} is not allowed here; use ${allow}` });
    },
  });
}
