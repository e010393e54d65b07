import type { FastifyInstance } from 'fastify';
import type { Directory } from '@patchbay/directory';
import type { Readiness } from '../readiness.js';
import type { HttpFrontSettings } from './front-options.js';
import { renderStatusPage } from './status-page.js';

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  'x-content-type-options': 'nosniff',
};

/** `/healthz`, `/readyz` and `/status`: answered from memory; no agent and no service is asked. */
export function healthRoutes(
  app: FastifyInstance,
  options: { readonly readiness: Readiness; readonly directory: Directory; readonly settings: HttpFrontSettings },
): void {
  const { readiness, directory, settings } = options;
  app.get('/healthz', () => ({ status: 'ok' }));
  app.get('/readyz', (_request, reply) => {
    const report = readiness.report();
    return reply.code(report.ready ? 200 : 503).send(report);
  });
  app.get('/status', (_request, reply) =>
    reply.headers(PAGE_HEADERS).send(
      renderStatusPage({
        ...settings,
        uptimeSeconds: process.uptime(),
        readiness: readiness.report(),
        agentCount: directory.size,
        agents: directory.list({ limit: MAX_ROWS }),
      }),
    ),
  );
}

/** More agents than a page for people can use. */
const MAX_ROWS = 1000;
