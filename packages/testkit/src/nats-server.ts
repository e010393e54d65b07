import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { ensureNatsServer } from './nats-binary.js';

/** How a server is started. */
export interface NatsServerOptions {
  /** Default: a free one. */
  readonly port?: number;
  /** A configuration of the caller's; address and port are set beside it. */
  readonly configFile?: string;
  /** Lines for the configuration that is written for this server. */
  readonly config?: string;
  /** `max_payload` in bytes. Default: the server's own, 1 MiB. */
  readonly maxPayload?: number;
}

// The server must not outlive the test process, however that ends. This shell holds the other end of a pipe: when the
// pipe closes it kills the server, stopped or not.
const KEEPER = '"$@" & pid=$!; echo "$pid"; cat >/dev/null; kill -9 "$pid" 2>/dev/null; wait';
const READY_WITHIN_MS = 10_000;

/** A real `nats-server` on 127.0.0.1 that can be hurt. Ends with the test process. */
export class NatsServer implements AsyncDisposable {
  readonly port: number;
  /** `nats://127.0.0.1:<port>`. */
  readonly url: string;
  readonly #args: readonly string[];
  readonly #folder: string;
  #keeper: ChildProcess | undefined;
  #pid: number | undefined;
  #log = '';

  private constructor(port: number, args: readonly string[], folder: string) {
    this.port = port;
    this.url = `nats://127.0.0.1:${port}`;
    this.#args = args;
    this.#folder = folder;
  }

  static async start(options: NatsServerOptions = {}): Promise<NatsServer> {
    const command = await ensureNatsServer();
    const folder = await mkdtemp(join(tmpdir(), 'patchbay-nats-'));
    const port = options.port ?? (await freePort());
    let configFile = options.configFile;
    if (configFile === undefined) {
      configFile = join(folder, 'nats.conf');
      const limit = options.maxPayload === undefined ? '' : `max_payload: ${options.maxPayload}\n`;
      await writeFile(configFile, `${limit}${options.config ?? ''}\n`);
    }
    const server = new NatsServer(port, [command, '-c', configFile, '-a', '127.0.0.1', '-p', String(port)], folder);
    await server.start();
    return server;
  }

  /** What the server wrote so far. */
  get log(): string {
    return this.#log;
  }

  /** Starts it on the same port, after `kill()` or `stop()`. Resolves when it takes connections. */
  async start(): Promise<void> {
    if (this.#keeper !== undefined) return;
    // A process group of its own: Ctrl-C in the terminal reaches the tests alone, and they end the server.
    const keeper = spawn('sh', ['-c', KEEPER, 'sh', ...this.#args], { stdio: 'pipe', detached: true });
    this.#keeper = keeper;
    keeper.unref();
    this.#pid = await firstLine(keeper);
    keeper.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#log += text;
    });
    try {
      await eventually(() => greets(this.port), { withinMs: READY_WITHIN_MS, what: `nats-server on ${this.port}` });
    } catch (cause) {
      await this.kill();
      throw new Error(`nats-server did not start; its log was:\n${this.#log}`, { cause });
    }
  }

  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void {
    this.#signal('SIGSTOP');
  }

  /** SIGCONT. */
  resume(): void {
    this.#signal('SIGCONT');
  }

  /** SIGKILL; resolves when it is gone. `start()` brings it back. */
  async kill(): Promise<void> {
    const keeper = this.#keeper;
    if (keeper === undefined) return;
    this.#keeper = undefined;
    this.#signal('SIGKILL');
    this.#pid = undefined;
    const gone = new Promise((resolve) => {
      if (keeper.exitCode === null) keeper.once('exit', resolve);
      else resolve(undefined);
    });
    keeper.ref();
    keeper.stdin?.end();
    await gone;
  }

  /** Ends it for good and removes its folder. Idempotent. */
  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#pid === undefined) throw new Error(`nats-server on ${this.port} is not running`);
    try {
      process.kill(this.#pid, signal);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  }
}

/** Starts one server; see {@link NatsServer}. */
export function startNatsServer(options: NatsServerOptions = {}): Promise<NatsServer> {
  return NatsServer.start(options);
}

/** The pid that the keeper prints. */
function firstLine(keeper: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    keeper.once('error', reject);
    keeper.once('exit', () => {
      reject(new Error('the shell that keeps nats-server ended early'));
    });
    keeper.stdout?.setEncoding('utf8').once('data', (line: string) => {
      resolve(Number.parseInt(line, 10));
    });
  });
}

/** Whether a server sends its INFO to a new connection. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port });
    const answer = (isThere: boolean): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.setTimeout(1_000, () => answer(false));
    socket.once('error', () => answer(false));
    socket.once('data', (data) => answer(data.toString('latin1').startsWith('INFO')));
  });
}
