import { PatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import type { Headers } from './bus.js';
import { NO_HEADERS } from './headers.js';

/** Nobody serves the subject right now. */
export class NoRespondersError extends PatchbayError {
  override readonly name = 'NoRespondersError';

  constructor(subject: string) {
    super('no_dispatcher', `nobody serves ${subject}`);
  }
}

/** No answer within the time that was left. */
export class DeadlineExceededError extends PatchbayError {
  override readonly name = 'DeadlineExceededError';

  constructor(subject: string, timeoutMs: number) {
    super('deadline_exceeded', `no answer from ${subject} within ${Math.round(timeoutMs)} ms`);
  }
}

/** The link to the message system is down, or dropped while the call was in flight. */
export class DisconnectedError extends PatchbayError {
  override readonly name = 'DisconnectedError';

  constructor(message = 'the message bus is not connected') {
    super('bus_unavailable', message);
  }
}

/** The responder ended the exchange with an error, in its own words. */
export class RemoteError extends PatchbayError {
  override readonly name = 'RemoteError';
  /** The error in the caller's protocol; empty when the responder left the wording to the caller. */
  readonly body: Uint8Array;
  /** What the responder said beside it. */
  readonly headers: Headers;

  constructor(code: ErrorCode, message: string, body: Uint8Array, headers: Headers = NO_HEADERS) {
    super(code, message);
    this.body = body;
    this.headers = headers;
  }
}
