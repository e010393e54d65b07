import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { eventually } from '@patchbay/testkit';

/** A TCP connection to a front, byte by byte, for what no HTTP client would send or show. */
export class RawClient implements Disposable {
  readonly socket: Socket;
  /** Every chunk as it arrived. */
  readonly chunks: Buffer[] = [];
  /** When the connection was closed, on the monotonic clock. */
  closedAtMs: number | undefined;
  readonly #connected: Promise<void>;

  constructor(url: string) {
    this.socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', noDelay: true });
    this.socket.on('data', (chunk) => this.chunks.push(chunk));
    this.socket.on('error', () => undefined); // a reset is one of the expected ends
    this.socket.on('close', () => {
      this.closedAtMs = performance.now();
    });
    this.#connected = new Promise((resolve) => {
      this.socket.once('connect', resolve);
    });
  }

  /** Opens a connection and sends `text`. */
  static async send(url: string, text: string): Promise<RawClient> {
    const client = new RawClient(url);
    await client.#connected;
    client.socket.write(text);
    return client;
  }

  /** Everything received. */
  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }

  /** What is behind the headers. */
  get body(): string {
    const { text } = this;
    return text.slice(text.indexOf('\r\n\r\n') + 4);
  }

  get status(): number {
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(this.text)?.[1] ?? 0);
  }

  /** Waits until `fragment` was received. */
  async received(fragment: string, withinMs = 5_000): Promise<void> {
    await eventually(() => this.text.includes(fragment), { withinMs, what: `receiving ${JSON.stringify(fragment)}` });
  }

  /** Waits until the connection is closed. */
  async closed(withinMs = 5_000): Promise<void> {
    await eventually(() => this.closedAtMs !== undefined, { withinMs, what: 'the connection being closed' });
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

/** A POST of JSON as raw HTTP. */
export function rawPost(path: string, body: string, headers = ''): string {
  const length = Buffer.byteLength(body);
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${headers}\r\n${body}`;
}

/** Undoes chunked framing: the payload of each chunk, which is what one write of the front was. */
export function httpChunks(body: string): string[] {
  const chunks: string[] = [];
  let rest = Buffer.from(body);
  for (;;) {
    const lineEnd = rest.indexOf('\r\n');
    const size = Number.parseInt(rest.subarray(0, Math.max(lineEnd, 0)).toString(), 16);
    if (lineEnd === -1 || Number.isNaN(size) || size === 0) return chunks;
    chunks.push(rest.subarray(lineEnd + 2, lineEnd + 2 + size).toString());
    rest = rest.subarray(lineEnd + 2 + size + 2);
  }
}
