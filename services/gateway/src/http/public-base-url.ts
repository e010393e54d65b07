import type { FastifyRequest } from 'fastify';

/** Host and port as they may stand in a URL; a `Host` header is the client's own text. */
const HOST = /^([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?$/;

/**
 * The base URL, without a slash at the end, under which the client reached this gateway: the configured one, else the
 * request's host. `X-Forwarded-Host` and `-Proto` count only from trusted proxies; Fastify sees to that.
 */
export function publicBaseUrl(request: FastifyRequest, publicUrl: string | null, ownUrl: string): string {
  if (publicUrl !== null) return publicUrl.replace(/\/+$/, '');
  const { host, protocol } = request;
  return HOST.test(host) && /^https?$/.test(protocol) ? `${protocol}://${host}` : ownUrl;
}
