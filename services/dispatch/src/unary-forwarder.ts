import type { AgentFailure } from './agent-failure.js';
import type { ResponseReader } from './agent-request.js';
import type { Call } from './call.js';
import { describeNonJson } from './json-reply.js';
import { replyHeaders } from './reply-headers.js';
import { ResponseHeaders } from './response-headers.js';
import { WholeReply } from './whole-reply.js';
import type { ReplyLimits } from './whole-reply.js';

const NOTHING = new Uint8Array(0);

/** Reads an agent's one reply and answers the call with it, byte for byte. */
export class UnaryForwarder implements ResponseReader {
  readonly #call: Call;
  readonly #reply: WholeReply;
  #headers = ResponseHeaders.none;

  constructor(call: Call, limits: ReplyLimits) {
    this.#call = call;
    this.#reply = new WholeReply(limits, call);
  }

  start(status: number, headers: ResponseHeaders): void {
    this.#headers = headers;
    this.#call.noteStatus(status);
    this.#refuse(this.#reply.start(status, headers));
  }

  data(chunk: Buffer): void {
    this.#refuse(this.#reply.add(chunk));
  }

  end(): void {
    const { body } = this.#reply;
    const problem = describeNonJson(body, this.#headers.get('content-type'));
    if (problem === undefined) {
      // A notification's answer is nobody's; most are known by having no `id` anywhere, without a parse.
      const isSilent = !mentionsId(this.#call.body) && this.#call.isNotification();
      this.#call.reply(isSilent ? NOTHING : body, replyHeaders(this.#headers));
    } else if (this.#call.isNotification()) {
      this.#call.reply(NOTHING, replyHeaders(this.#headers));
    } else {
      this.#call.fail({ code: 'agent_bad_reply', detail: problem });
    }
  }

  failed(failure: AgentFailure): void {
    // To a caller who waits for one reply a cut one is a bad reply, not a broken stream.
    const isCut = failure.code === 'stream_broken';
    this.#call.fail(isCut ? { code: 'agent_bad_reply', detail: failure.detail } : failure);
  }

  #refuse(failure: AgentFailure | undefined): void {
    if (failure !== undefined) this.#call.fail(failure);
  }
}

const ID = Buffer.from('"id"');

// The name as bytes, and no second view of a body that is a Buffer already: this is done for every reply.
function mentionsId(body: Uint8Array): boolean {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return bytes.includes(ID);
}
