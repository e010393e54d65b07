import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('fixtures/bus-process.mjs', import.meta.url));

/** Another node in a process of its own. */
export interface BusProcess extends AsyncDisposable {
  signal(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void;
}

/** Starts a node that serves `p.…`, or one that calls `r.…`. */
export async function startBusProcess(url: string, role: 'serve' | 'call'): Promise<BusProcess> {
  const child = fork(SCRIPT, [url, role]);
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve());
    child.once('exit', (code) => reject(new Error(`the process of the other node ended with code ${code}`)));
  });
  return {
    signal: (signal) => void child.kill(signal),
    [Symbol.asyncDispose]: () => {
      child.kill('SIGKILL');
      return exited;
    },
  };
}
