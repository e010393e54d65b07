import type { IncomingMessage } from 'node:http';

const SLASH = 0x2f;
const ABSOLUTE = /^https?:\/\/([^/?#]+)(.*)$/i;

/**
 * Brings a request for `http://host/path` into the usual form; that host then counts, and not the `Host` header. Hot
 * path: the usual form is known by its first character. Source: RFC 9112 section 3.2.2.
 */
export function useOriginForm(request: IncomingMessage): void {
  const { url = '' } = request;
  if (url.charCodeAt(0) === SLASH) return;
  const [, host, path = ''] = ABSOLUTE.exec(url) ?? [];
  if (host === undefined) return;
  request.headers.host = host.slice(host.lastIndexOf('@') + 1);
  request.url = path.startsWith('/') ? path : `/${path}`;
}
