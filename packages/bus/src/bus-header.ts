/** Names of the headers that travel on the bus. Anything else with the prefix is refused from strangers. */
export const BusHeader = {
  /** ULID of the call. */
  call: 'Patchbay-Call',
  /** Time left in whole milliseconds when the message was sent. */
  timeoutMs: 'Patchbay-Timeout-Ms',
  /** Who calls, as the front that received the call knows it. */
  caller: 'Patchbay-Caller',
  /** Signature over the caller, when the cluster has a secret. */
  callerSignature: 'Patchbay-Caller-Sig',
  /** How many gateways the call has passed. */
  hops: 'Patchbay-Hops',
  /** The node that sent the message. */
  node: 'Patchbay-Node',
  /** The agent meant, where the subject does not say it. */
  agent: 'Patchbay-Agent',
  /** Kind of frame: accept part data end error credit cancel alive. */
  frame: 'Patchbay-Frame',
  /** Number of the frame within its stream, from 1. */
  sequence: 'Patchbay-Seq',
  /** Bytes that the receiver can take. */
  credit: 'Patchbay-Credit',
  /** `frames`: the caller speaks frames. Absent: a plain client. */
  accept: 'Patchbay-Accept',
  /**
   * Of a call `stream`: the caller waits for any number of replies; absent: for one. Of an `accept` frame `sign`: the
   * caller is to say that it still waits, with a `credit` frame of nothing.
   */
  wants: 'Patchbay-Wants',
  /** Bytes of frames that the sending connection has sent to the receiving one so far, this frame included. */
  sent: 'Patchbay-Sent',
  /** Code of the error that ended the exchange. */
  error: 'Patchbay-Error',
  /** Its message, one line. */
  errorMessage: 'Patchbay-Error-Message',
  /** In which dialect a card is written. */
  dialect: 'Patchbay-Dialect',
  /** `event:` of the server-sent event that a part came as. */
  eventName: 'Patchbay-Event',
  /** `id:` of that event. */
  eventId: 'Patchbay-Event-Id',
  /** `json`: the one part of this stream is a whole JSON-RPC reply, because the agent answered without a stream. */
  content: 'Patchbay-Content',
  /** Prefix of the client's own `X-…` headers, followed by the name. */
  forwardPrefix: 'Patchbay-Fwd-',
  a2aVersion: 'A2A-Version',
  a2aExtensions: 'A2A-Extensions',
  traceparent: 'traceparent',
  tracestate: 'tracestate',
} as const;
