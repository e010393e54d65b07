import { BusHeader } from '@patchbay/bus';
import type { Headers } from '@patchbay/bus';
import type { AgentFailure } from './agent-failure.js';
import type { AgentRequest, ResponseReader } from './agent-request.js';
import type { Call } from './call.js';
import { EventStreamReader } from './event-stream-reader.js';
import type { AgentEvent } from './event-stream-reader.js';
import { failureOfStatus } from './http-status.js';
import { describeNonJson, mediaTypeOf } from './json-reply.js';
import { replyHeaders } from './reply-headers.js';
import { ResponseHeaders } from './response-headers.js';
import { encodingFailure, WholeReply } from './whole-reply.js';
import type { ReplyLimits } from './whole-reply.js';

/** Limits of {@link StreamForwarder}; `maxResponseBytes` is that of an event too. */
export interface StreamLimits extends ReplyLimits {
  /** Longest silence of the agent, milliseconds. */
  readonly idleMs: number;
}

/** How the agent's side came to its end; carried out once everything before it was written. */
type Ending = 'end' | AgentFailure;

/** Names of the events after which KubeMQ's agents have nothing more to say. */
const FINAL_EVENTS: ReadonlySet<string> = new Set(['task.done', 'task.error']);

/**
 * Reads an agent's event stream and passes it on: one event in, one part out, in order. Nothing is held beyond the
 * chunk in hand: while a part waits for the reader no more is read from the agent.
 *
 * Any byte from the agent counts as a sign of life, its comments too: they are how it says that it still works.
 */
export class StreamForwarder implements ResponseReader {
  readonly #call: Call;
  readonly #limits: StreamLimits;
  readonly #events: EventStreamReader;
  readonly #queue: AgentEvent[] = [];
  #request: AgentRequest | undefined;
  /** What the agent answered when it is not an event stream. */
  #whole: WholeReply | undefined;
  #headers = ResponseHeaders.none;
  #firstHeaders: Headers | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #ending: Ending | undefined;
  #isWriting = false;
  #isPaused = false;
  #hasEvents = false;
  #awaitsFinalEvent = false;
  readonly #onStreaming: () => void;

  /** @param onStreaming Told when the agent has answered with an event stream. */
  constructor(call: Call, limits: StreamLimits, onStreaming: () => void) {
    this.#call = call;
    this.#limits = limits;
    this.#onStreaming = onStreaming;
    this.#events = new EventStreamReader({
      maxEventBytes: limits.maxResponseBytes,
      onEvent: (event) => this.#take(event),
    });
  }

  /** The request whose response this reads. */
  attach(request: AgentRequest): void {
    this.#request = request;
  }

  /** Lets go of the idle clock; part of the call's end. */
  close(): void {
    clearTimeout(this.#idleTimer);
    this.#queue.length = 0;
  }

  start(status: number, headers: ResponseHeaders): void {
    this.#headers = headers;
    this.#call.noteStatus(status);
    if (mediaTypeOf(headers.get('content-type')) !== 'text/event-stream') {
      // The call's deadline stays: this is one reply.
      this.#whole = new WholeReply(this.#limits, this.#call);
      const refused = this.#whole.start(status, headers);
      if (refused !== undefined) this.#call.fail(refused);
      return;
    }
    const failure = failureOfStatus(status) ?? encodingFailure(headers);
    if (failure !== undefined) return this.#call.fail(failure);
    this.#call.clearDeadline();
    this.#firstHeaders = replyHeaders(headers);
    this.#idleTimer = setTimeout(this.#onIdle, this.#limits.idleMs);
    this.#onStreaming();
    return undefined;
  }

  data(chunk: Buffer): void {
    if (this.#whole !== undefined) {
      const refused = this.#whole.add(chunk);
      if (refused !== undefined) this.#call.fail(refused);
      return;
    }
    if (this.#ending !== undefined) return;
    this.#idleTimer?.refresh();
    const failure = this.#events.feed(chunk);
    if (failure !== undefined && this.#ending === undefined) this.#stop(failure);
    if (this.#isWriting && this.#ending === undefined) {
      // A part of an earlier chunk still waits for the reader.
      this.#isPaused = true;
      this.#request?.pause();
    }
    this.#pump();
  }

  end(): void {
    if (this.#whole !== undefined) return this.#endWhole(this.#whole);
    if (this.#ending !== undefined) return undefined;
    this.#ending = this.#events.finish() ?? this.#judgeEnd();
    return this.#pump();
  }

  failed(failure: AgentFailure): void {
    if (this.#ending !== undefined) return;
    const isCutReply = this.#whole !== undefined && failure.code === 'stream_broken';
    this.#ending = isCutReply ? { code: 'agent_bad_reply', detail: failure.detail } : failure;
    this.#pump();
  }

  #take(event: AgentEvent): void {
    if (this.#ending !== undefined) return;
    this.#hasEvents = true;
    this.#queue.push(event);
    if (event.name === undefined) return;
    if (FINAL_EVENTS.has(event.name)) this.#stop('end');
    // A JSON-RPC response under such a name is A2A's, whose streams end with the response.
    else if (event.name.startsWith('task.') && !event.data.includes('"jsonrpc"')) this.#awaitsFinalEvent = true;
  }

  /** Reads no more from the agent and closes its connection; what was taken is still written. */
  #stop(ending: Ending): void {
    this.#ending = ending;
    this.#request?.abort();
  }

  #judgeEnd(): Ending {
    if (!this.#hasEvents) {
      return { code: 'agent_bad_reply', detail: 'agent answered a stream call with an empty body' };
    }
    return this.#awaitsFinalEvent
      ? { code: 'stream_broken', detail: 'agent ended the stream without a final event' }
      : 'end';
  }

  /** An agent that cannot stream answers with plain JSON: a JSON-RPC reply or error, which goes on as it is. */
  #endWhole(whole: WholeReply): void {
    const { body } = whole;
    const problem = describeNonJson(body, this.#headers.get('content-type'));
    if (problem !== undefined) {
      const what = body.length === 0 ? 'an empty body' : problem;
      return this.#call.fail({ code: 'agent_bad_reply', detail: `agent answered a stream call with ${what}` });
    }
    const headers = { ...replyHeaders(this.#headers), [BusHeader.content]: 'json' };
    this.#ending = 'end';
    this.#call.clearDeadline();
    void this.#call.write(body, headers).then(
      () => this.#call.end(),
      () => this.#callerLeft(),
    );
    return undefined;
  }

  #pump(): void {
    if (!this.#isWriting) void this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    try {
      for (let at = 0; at < this.#queue.length; at += 1) {
        const event = this.#queue[at];
        if (event !== undefined) await this.#call.write(event.data, this.#headersOf(event));
        if (this.#call.isOver) return;
      }
    } catch {
      return this.#callerLeft();
    }
    this.#queue.length = 0;
    this.#isWriting = false;
    if (this.#ending !== undefined) return this.#finish(this.#ending);
    this.#idleTimer?.refresh();
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#request?.resume();
    }
    return undefined;
  }

  #headersOf(event: AgentEvent): Headers {
    const first = this.#firstHeaders;
    this.#firstHeaders = undefined;
    return {
      ...first,
      ...(event.name === undefined ? {} : { [BusHeader.eventName]: event.name }),
      ...(event.id === undefined ? {} : { [BusHeader.eventId]: event.id }),
    };
  }

  #finish(ending: Ending): void {
    if (ending === 'end') this.#call.end();
    else this.#call.fail(ending);
  }

  /** A write was refused: the exchange is over on the caller's side, and its signal may or may not have said so. */
  #callerLeft(): void {
    this.#call.fail({ code: 'cancelled', detail: 'the caller left' });
  }

  readonly #onIdle = (): void => {
    // While a part waits for the reader nothing is read, so silence says nothing about the agent.
    if (this.#isWriting) {
      this.#idleTimer?.refresh();
      return;
    }
    const seconds = this.#limits.idleMs / 1000;
    this.#call.fail({ code: 'deadline_exceeded', detail: `agent silent for ${seconds} s` });
  };
}
