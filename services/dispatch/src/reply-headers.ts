import { BusHeader } from '@patchbay/bus';
import type { Headers } from '@patchbay/bus';
import type { ResponseHeaders } from './response-headers.js';

const LEGACY_EXTENSIONS = 'X-A2A-Extensions';
const NONE: Headers = {};

/**
 * The few response headers of an agent that go back to the caller: which extensions it activated (servers repeat the
 * line; it is merged here) and which version it spoke. 0.3 agents name the first with an `X-`.
 */
export function replyHeaders(headers: ResponseHeaders): Headers {
  const extensions = headers.get('a2a-extensions');
  const version = headers.get('a2a-version');
  const legacy = headers.get('x-a2a-extensions');
  if (extensions === undefined && version === undefined && legacy === undefined) return NONE;
  return {
    ...(extensions === undefined ? {} : { [BusHeader.a2aExtensions]: extensions }),
    ...(version === undefined ? {} : { [BusHeader.a2aVersion]: version }),
    ...(legacy === undefined ? {} : { [BusHeader.forwardPrefix + LEGACY_EXTENSIONS]: legacy }),
  };
}
