import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../services/patchbay/dist/main.js', import.meta.url));
const STOP_LIMIT_MS = 30_000;

/** What is running, for a benchmark to end in reverse order whatever happens. */
export class Running {
  #stops = [];

  /** Notes what `starting` resolves to, and returns it. */
  async add(starting) {
    const started = await starting;
    this.#stops.push(() => started.stop());
    return started;
  }

  async stop() {
    for (const stop of this.#stops.splice(0).toReversed()) await stop();
  }
}

/** Starts one of `servers/` in a process of its own. */
export async function startServer(file, ...args) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, { stdio: 'inherit' });
  const [{ port }] = await once(child, 'message', { signal: AbortSignal.timeout(10_000) });
  return { port, pid: child.pid, stop: () => stop(child) };
}

/** Starts the load generator. */
export function startLoadGenerator() {
  const child = fork(fileURLToPath(new URL('load-generator.mjs', import.meta.url)), { stdio: 'inherit' });
  return {
    run: async (job) => {
      child.send(job);
      const [result] = await once(child, 'message', { signal: AbortSignal.timeout((job.seconds + 30) * 1_000) });
      if (result.failure !== undefined) throw new Error(`load on port ${job.port}: ${result.failure}`);
      return result;
    },
    stop: () => stop(child),
  };
}

/** Starts the product as built, with its own data and further settings; resolves when it is ready. */
export async function startPatchbay(dataDir, settings = {}) {
  const [port, metricsPort] = [await freePort(), await freePort()];
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PATCHBAY|KUBEMQ)_/.test(name)));
  const startedAt = performance.now();
  const child = spawn(process.execPath, [MAIN], {
    env: {
      ...env,
      PATCHBAY_HTTP_PORT: String(port),
      PATCHBAY_METRICS_PORT: String(metricsPort),
      PATCHBAY_DATA_DIR: dataDir,
      PATCHBAY_LOG_LEVEL: 'warn',
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.resume();
  const url = `http://127.0.0.1:${port}`;
  // A node without the gateway answers on its metrics port alone.
  const hasFront = (settings.PATCHBAY_SERVICES ?? 'gateway').includes('gateway');
  while (!(await answers(hasFront ? `${url}/readyz` : `http://127.0.0.1:${metricsPort}/readyz`))) {
    if (child.exitCode !== null) throw new Error(`Patchbay ended with exit code ${child.exitCode}`);
    if (performance.now() - startedAt > 60_000) {
      child.kill('SIGKILL');
      throw new Error('Patchbay was not ready within 60 s');
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
  return { port, url, pid: child.pid, readyInMs: performance.now() - startedAt, stop: () => stop(child) };
}

/** Resident memory of a process in MB, or undefined where the system does not say. */
export async function residentMb(pid) {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  } catch {
    return undefined;
  }
}

async function answers(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    return false;
  }
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await ended;
  clearTimeout(timer);
}

async function freePort() {
  const server = createServer();
  await once(server.listen(0), 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
