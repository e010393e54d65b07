import { DebugEvents, Events } from 'nats';
import type { NatsConnection } from 'nats';

/** What is told of the connection. */
export interface ConnectionListener {
  /** Called when the level changes, and not for each of the client's several events about one change. */
  onLevel(isUp: boolean): void;
  /** The server complains, for instance of a subject that we may not use; for the log. */
  onComplaint(code: string): void;
}

/** The client's transport (nats 2.29), which waits for its writes before it closes. */
interface WithTransport {
  readonly protocol?: { readonly transport?: { readonly socket?: { destroy(): void } } };
}

/**
 * Watches whether the link is up. The client's events come late, repeatedly and in pairs that do not match, so they
 * are read as levels.
 */
export class ConnectionWatcher {
  readonly #nats: NatsConnection;
  readonly #listener: ConnectionListener;
  #isUp = true;
  #isChecking = false;

  constructor(nats: NatsConnection, listener: ConnectionListener) {
    this.#nats = nats;
    this.#listener = listener;
    void this.#watch();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  async #watch(): Promise<void> {
    for await (const { type, data } of this.#nats.status()) {
      switch (type) {
        case DebugEvents.StaleConnection:
          this.#set(false);
          this.#cut();
          break;
        case DebugEvents.ClientInitiatedReconnect:
        case DebugEvents.Reconnecting:
        case Events.Disconnect:
          this.#set(false);
          break;
        case Events.Reconnect:
          this.#set(true);
          break;
        case DebugEvents.PingTimer:
          // The client pings only while it is connected: should we think otherwise, an event has got lost.
          if (!this.#isUp) void this.#check();
          break;
        case Events.Update:
        case Events.LDM:
          break;
        case Events.Error:
          this.#listener.onComplaint(typeof data === 'string' ? data : JSON.stringify(data));
          break;
      }
    }
    this.#set(false);
  }

  #set(isUp: boolean): void {
    if (this.#isUp === isUp) return;
    this.#isUp = isUp;
    this.#listener.onLevel(isUp);
  }

  /**
   * Destroys the socket of a link that was found silent. The client would first wait until everything it wrote is
   * taken, which a stopped server never does.
   */
  #cut(): void {
    (this.#nats as unknown as WithTransport).protocol?.transport?.socket?.destroy();
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      await this.#nats.flush();
      this.#set(true);
    } catch {
      // Down indeed.
    } finally {
      this.#isChecking = false;
    }
  }
}
