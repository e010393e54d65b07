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

/** The id is nearly always among the first members. */
const FIRST_BYTES = 64;

// Done for every reply: where the name nearly always is a loop is quicker than a call of the search.
function mentionsId(body: Uint8Array): boolean {
  for (let at = 0; at < FIRST_BYTES; at += 1) {
    if (body[at] === 0x69 && body[at + 1] === 0x64 && body[at + 2] === 0x22 && body[at - 1] === 0x22) return true;
  }
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return bytes.includes(ID);
}
