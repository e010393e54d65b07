import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A TCP connection in two halves, through which a test can hurt the link between two processes. */
export class TcpProxy implements AsyncDisposable {
  readonly #target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;
  #isStalled = false;

  private constructor(targetPort: number) {
    this.#target = targetPort;
    this.#server = createServer((near) => this.#join(near));
  }

  /** Listens on 127.0.0.1 and passes on to `targetPort` there. */
  static async start(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Drops every connection, and new ones too until `restore()`. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Keeps connections open, and passes nothing on until `restore()`. */
  stall(): void {
    this.#isStalled = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Ends a cut or a stall. */
  restore(): void {
    this.#isCut = false;
    this.#isStalled = false;
    for (const socket of this.#sockets) socket.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #join(near: Socket): void {
    if (this.#isCut) {
      near.resetAndDestroy();
      return;
    }
    const far = connect({ host: '127.0.0.1', port: this.#target });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('error', () => {}); // the other half is told by `close`
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.on('data', (bytes) => {
        if (!to.write(bytes)) from.pause();
      });
      to.on('drain', () => {
        if (!this.#isStalled) from.resume();
      });
      if (this.#isStalled) from.pause();
    }
  }
}
