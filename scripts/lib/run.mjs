import { spawn } from 'node:child_process';

/**
 * Runs a command in the foreground; a failing one ends this process with its exit code.
 * @param {string} command @param {string[]} args @param {import('node:child_process').SpawnOptions} [options]
 */
export async function run(command, args, options = {}) {
  const child = spawn(command, args, { stdio: 'inherit', ...options });
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (exitCode, signal) => resolve(exitCode ?? (signal === null ? 0 : 1)));
  });
  if (code !== 0) process.exit(code);
}
