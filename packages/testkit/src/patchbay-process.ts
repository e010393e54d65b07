import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';

/** How a node is started. */
export interface PatchbayProcessOptions {
  /** Further settings; they win over the defaults. */
  readonly env?: Readonly<Record<string, string>>;
  /** Folder of data; kept when given, else a temporary one, begun as {@link DATA_DIR_TEMPLATE} says, that `stop()` removes. */
  readonly dataDir?: string;
  /** What is run, below the built folder of `services/patchbay`. Default `main.js`. */
  readonly entryPoint?: string;
  /** Command line after it. Default: none. */
  readonly args?: readonly string[];
  /** Milliseconds until `/readyz` must answer 200. Default 30,000. */
  readonly readyWithinMs?: number;
}

/** Names the environment variable with a folder of data that new nodes begin with a copy of. Unset: an empty one. */
export const DATA_DIR_TEMPLATE = 'PATCHBAY_TEST_DATA_DIR_TEMPLATE';

const BUILT = fileURLToPath(new URL('../../../services/patchbay/dist/', import.meta.url));

/** The product as its users run it: one process, real ports, its own folder of data. */
export class PatchbayProcess implements AsyncDisposable {
  /** Base URL of the main port, such as `http://localhost:41234`. */
  readonly url: string;
  /** Base URL of the metrics port. */
  readonly metricsUrl: string;
  readonly dataDir: string;
  readonly child: ChildProcess;
  readonly #ownsDataDir: boolean;
  readonly #exited: Promise<number | null>;
  #output = '';

  private constructor(child: ChildProcess, ports: { http: number; metrics: number }, dataDir: string, owns: boolean) {
    this.child = child;
    this.url = `http://localhost:${ports.http}`;
    this.metricsUrl = `http://localhost:${ports.metrics}`;
    this.dataDir = dataDir;
    this.#ownsDataDir = owns;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    this.#exited = new Promise((resolve) => {
      child.once('exit', (code) => resolve(code));
    });
  }

  /** Starts a node and waits until it is ready. @throws Error with its output when it ends or does not get ready. */
  static async start(options: PatchbayProcessOptions = {}): Promise<PatchbayProcess> {
    const node = await PatchbayProcess.spawn(options);
    try {
      await eventually(
        async () => {
          if (node.child.exitCode !== null) return 'ended';
          const url = hasFront(options) ? node.url : node.metricsUrl;
          const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(1_000) });
          await response.body?.cancel();
          return response.status === 200 ? 'ready' : undefined;
        },
        { withinMs: options.readyWithinMs ?? 30_000, what: 'the node being ready' },
      );
      if (node.child.exitCode !== null) throw new Error(`the node ended with exit code ${node.child.exitCode}`);
      return node;
    } catch (cause) {
      await node.stop('SIGKILL');
      throw new Error(`the node did not start; its output was:\n${node.output}`, { cause });
    }
  }

  /** Starts a node without waiting for it. */
  static async spawn(options: PatchbayProcessOptions = {}): Promise<PatchbayProcess> {
    const dataDir = options.dataDir ?? (await newDataDir(usesEmbeddedDatabase(options)));
    const ports = { http: await freePort(), metrics: await freePort() };
    const child = spawn(process.execPath, [join(BUILT, options.entryPoint ?? 'main.js'), ...(options.args ?? [])], {
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: process.env['HOME'] ?? '',
        PATCHBAY_HTTP_PORT: String(ports.http),
        PATCHBAY_METRICS_PORT: String(ports.metrics),
        PATCHBAY_DATA_DIR: dataDir,
        ...options.env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new PatchbayProcess(child, ports, dataDir, options.dataDir === undefined);
  }

  /** Everything the process printed so far. */
  get output(): string {
    return this.#output;
  }

  /** Resolves with the exit code when the process has ended; null after a signal. */
  get exited(): Promise<number | null> {
    return this.#exited;
  }

  /** SIGSTOP: its connections stay open and nothing answers. */
  pause(): void {
    this.child.kill('SIGSTOP');
  }

  /** SIGCONT. */
  resume(): void {
    this.child.kill('SIGCONT');
  }

  /** Sends a signal (default SIGTERM), waits for the end, and removes the folder of data if it is ours. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    const code = await this.#exited;
    if (this.#ownsDataDir) await rm(this.dataDir, { recursive: true, force: true });
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** What decides which services it runs; undefined when it runs all. */
function servicesOf({ env = {}, entryPoint }: PatchbayProcessOptions): string | undefined {
  return entryPoint ?? env['PATCHBAY_SERVICES'];
}

/** Without one, only the metrics port tells whether it is ready. */
function hasFront(options: PatchbayProcessOptions): boolean {
  return servicesOf(options)?.includes('gateway') ?? true;
}

function usesEmbeddedDatabase(options: PatchbayProcessOptions): boolean {
  return servicesOf(options) === undefined && options.env?.['PATCHBAY_DATABASE_URL'] === undefined;
}

async function newDataDir(isEmbedded: boolean): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'patchbay-test-'));
  const template = process.env[DATA_DIR_TEMPLATE];
  if (template !== undefined && isEmbedded) await cp(template, folder, { recursive: true });
  return folder;
}
