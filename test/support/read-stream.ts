import type { Socket } from 'node:net';
import { openRawStream } from './gateway-client.js';
import type { Front } from './load-callers.js';

/** A stream as its client sees it, on the bytes of its connection. */
export class OpenStream {
  readonly socket: Socket;
  #text = '';
  #isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('close', () => {
      this.#isClosed = true;
    });
  }

  /** Opens a stream of an agent; resolves with its first event. */
  static async open(front: Front, agentId: string): Promise<OpenStream> {
    return new OpenStream(await openRawStream(front, agentId));
  }

  /** Reads on; until then the client takes nothing. */
  read(): this {
    this.socket.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString('latin1');
    });
    this.socket.resume();
    return this;
  }

  /** What has come since the first event. */
  get text(): string {
    return this.#text;
  }

  /** Whether the answer is over: its last chunk has come, or the connection is gone. */
  get isOver(): boolean {
    return this.#isClosed || this.#text.endsWith('0\r\n\r\n');
  }

  /** Whether it ended as if the agent had said everything: properly, and without an error event. */
  get looksComplete(): boolean {
    return this.#text.endsWith('0\r\n\r\n') && !/^event: (task\.)?error$/m.test(this.#text);
  }

  /** Leaves. */
  leave(): void {
    this.socket.destroy();
  }
}
