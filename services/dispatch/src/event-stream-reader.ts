import { createParser } from 'eventsource-parser';
import type { EventSourceMessage, EventSourceParser } from 'eventsource-parser';
import type { AgentFailure } from './agent-failure.js';

/** One server-sent event, ready to be sent on. */
export interface AgentEvent {
  readonly name: string | undefined;
  readonly id: string | undefined;
  /** `data` in UTF-8. */
  readonly data: Buffer;
}

/** Longest `event:` and `id:`; they travel as headers. */
const MAX_FIELD_LENGTH = 1_024;
/** What a line may have beside its data: `data: ` and the parser's own counting. */
const FIELD_SLACK = 64;
const CR = '\r';
const LF = '\n';

/**
 * Turns the bytes of an event stream into events, however they are cut into chunks: in the middle of a character, a
 * line end or an event. All three line ends of the HTML standard count, section 9.2.6.
 */
export class EventStreamReader {
  readonly #maxEventBytes: number;
  readonly #onEvent: (event: AgentEvent) => void;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  readonly #parser: EventSourceParser;
  #failure: AgentFailure | undefined;
  #endedWithCr = false;
  #isFinishing = false;

  constructor(options: { readonly maxEventBytes: number; readonly onEvent: (event: AgentEvent) => void }) {
    this.#maxEventBytes = options.maxEventBytes;
    this.#onEvent = options.onEvent;
    this.#parser = createParser({
      onEvent: (message) => this.#take(message),
      onError: (error) => {
        // Unknown fields and odd `retry` values are to be ignored (HTML standard, section 9.2.6).
        if (error.type === 'max-buffer-size-exceeded') this.#failure ??= this.#tooLarge();
      },
      // Counted in UTF-16 units, which bounds what an unfinished event holds; a finished one is measured in bytes.
      maxBufferSize: options.maxEventBytes + FIELD_SLACK,
    });
  }

  /** Takes the next bytes. @returns why the stream cannot go on; events before the fault were told. */
  feed(chunk: Uint8Array): AgentFailure | undefined {
    if (this.#failure !== undefined) return this.#failure;
    let text: string;
    try {
      text = this.#decoder.decode(chunk, { stream: true });
    } catch {
      return this.#fail({ code: 'agent_bad_reply', detail: 'the event stream is not valid UTF-8' });
    }
    // The parser holds a last CR back, since an LF may follow, and would give the event one chunk late. So the line is
    // ended here, and the LF is dropped if it does come.
    if (this.#endedWithCr && text.startsWith(LF)) text = text.slice(1);
    else if (text === '') return undefined;
    this.#endedWithCr = text.endsWith(CR);
    if (text !== '') this.#parser.feed(this.#endedWithCr ? text + LF : text);
    return this.#failure;
  }

  /** The stream has ended. @returns a failure when it ended in the middle of an event. */
  finish(): AgentFailure | undefined {
    if (this.#failure !== undefined) return this.#failure;
    try {
      this.#decoder.decode();
    } catch {
      return this.#fail(CUT_EVENT);
    }
    this.#isFinishing = true;
    this.#parser.feed(LF + LF);
    return this.#failure;
  }

  #take(message: EventSourceMessage): void {
    if (this.#failure !== undefined) return;
    // An event whose blank line never came may be half an event: the standard says to drop it; here it is a fault.
    if (this.#isFinishing) return void this.#fail(CUT_EVENT);
    const { event: name, id } = message;
    if ((name?.length ?? 0) > MAX_FIELD_LENGTH || (id?.length ?? 0) > MAX_FIELD_LENGTH) {
      const detail = `an event's name or id is over ${MAX_FIELD_LENGTH} characters`;
      return void this.#fail({ code: 'agent_bad_reply', detail });
    }
    const data = Buffer.from(message.data);
    if (data.length > this.#maxEventBytes) return void this.#fail(this.#tooLarge());
    this.#onEvent({ name, id, data });
  }

  #fail(failure: AgentFailure): AgentFailure {
    this.#failure = failure;
    return failure;
  }

  #tooLarge(): AgentFailure {
    return { code: 'response_too_large', detail: `an event over ${this.#maxEventBytes} bytes` };
  }
}

const CUT_EVENT: AgentFailure = { code: 'stream_broken', detail: 'agent ended the stream in the middle of an event' };
