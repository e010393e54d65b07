import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from './root.mjs';

const TURBO = join(ROOT, 'node_modules', 'turbo', 'bin', 'turbo');

/**
 * Builds every package that changed, quietly; what the compiler says is shown when it fails.
 * @returns {Promise<boolean>} whether it worked
 */
export async function build() {
  const child = spawn(process.execPath, [TURBO, 'run', 'build', '--output-logs=errors-only', '--log-prefix=none'], {
    cwd: ROOT,
    env: { ...process.env, TURBO_TELEMETRY_DISABLED: '1', TURBO_NO_UPDATE_NOTIFIER: '1', TURBO_UI: 'false' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) console.error(`${output}\nThe build failed.`);
  return code === 0;
}

/** Builds, and ends this process when that fails. */
export async function ensureBuilt() {
  const startedAt = performance.now();
  if (!(await build())) process.exit(1);
  const seconds = (performance.now() - startedAt) / 1_000;
  if (seconds > 2) console.log(`Built in ${seconds.toFixed(1)} s.`);
}
