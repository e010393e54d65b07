import { describe, expect, test } from 'vitest';
import { describeFailure } from './agent-failure.js';

function failing(code: string): Error {
  return Object.assign(new Error(''), { code });
}

describe('a connection that could not be made', () => {
  test.each([
    ['ECONNREFUSED', 'connection refused'],
    ['ENOTFOUND', 'host not found'],
    ['EAI_AGAIN', 'host name lookup failed'],
    ['ECONNRESET', 'connection reset'],
    ['UND_ERR_SOCKET', 'connection reset'],
    ['ETIMEDOUT', 'connect timed out'],
    ['UND_ERR_CONNECT_TIMEOUT', 'connect timed out'],
    ['EHOSTUNREACH', 'host unreachable'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'TLS certificate not accepted (DEPTH_ZERO_SELF_SIGNED_CERT)'],
    ['CERT_HAS_EXPIRED', 'TLS certificate not accepted (CERT_HAS_EXPIRED)'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'TLS certificate not accepted (ERR_TLS_CERT_ALTNAME_INVALID)'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'TLS handshake failed (ERR_SSL_WRONG_VERSION_NUMBER)'],
    ['EPROTO', 'TLS handshake failed (EPROTO)'],
    ['EWHATEVER', 'connection failed (EWHATEVER)'],
  ])('%s: %s', (code, detail) => {
    expect(describeFailure(failing(code), 'connecting')).toEqual({ code: 'agent_unreachable', detail });
  });

  test('on both addresses of a dual-stack host: the empty message of the AggregateError is not used', () => {
    const both = Object.assign(new AggregateError([failing('ECONNREFUSED'), failing('ECONNREFUSED')]), {
      code: 'ECONNREFUSED',
    });
    expect(both.message).toBe('');
    expect(describeFailure(both, 'connecting').detail).toBe('connection refused');
    const bare = new AggregateError([failing('ECONNREFUSED')]);
    expect(describeFailure(bare, 'connecting').detail).toBe('connection refused');
  });

  test('without any code', () => {
    expect(describeFailure(new Error('fetch failed', { cause: failing('ENOTFOUND') }), 'connecting').detail).toBe(
      'host not found',
    );
    expect(describeFailure(new Error(''), 'connecting').detail).toBe('connection failed');
    expect(describeFailure('odd', 'connecting').detail).toBe('connection failed');
  });
});

describe('a connection that failed later', () => {
  test('before the reply began', () => {
    expect(describeFailure(failing('ECONNRESET'), 'waiting')).toEqual({
      code: 'agent_bad_reply',
      detail: 'connection closed before the reply',
    });
  });

  test('within the reply', () => {
    expect(describeFailure(failing('ECONNRESET'), 'reading')).toEqual({
      code: 'stream_broken',
      detail: 'connection closed before the end of the reply',
    });
    expect(describeFailure(failing('UND_ERR_RES_CONTENT_LENGTH_MISMATCH'), 'reading').detail).toContain('length');
  });

  test('because this node is shutting down', () => {
    expect(describeFailure(failing('UND_ERR_DESTROYED'), 'waiting').code).toBe('draining');
  });
});
