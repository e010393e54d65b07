import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './root.mjs';
import { run } from './run.mjs';

/** Installs the dependencies when `node_modules` is missing or is not what the lock file says. */
export async function ensureInstalled() {
  if (await isInstalled()) return;
  console.log('Installing dependencies …');
  // Development dependencies too, whatever NODE_ENV says: they build the product.
  await npm(['ci', '--no-audit', '--no-fund', '--include=dev', '--loglevel=error']);
}

/** Runs the npm that started this script, else the one on the path. */
async function npm(args) {
  const cli = process.env.npm_execpath;
  if (cli !== undefined && cli.endsWith('.js')) await run(process.execPath, [cli, ...args], { cwd: ROOT });
  else await run('npm', args, { cwd: ROOT, shell: process.platform === 'win32' });
}

/**
 * npm leaves a record of what it installed, written last; it is compared with the lock file package by package.
 * Packages for other platforms are in the lock file alone.
 */
async function isInstalled() {
  try {
    const wanted = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')).packages;
    const present = JSON.parse(await readFile(join(ROOT, 'node_modules', '.package-lock.json'), 'utf8')).packages;
    return Object.entries(wanted).every(([path, { version, link, optional, devOptional, peer }]) => {
      if (!path.includes('node_modules/')) return true; // the workspaces themselves
      const found = present[path];
      if (found === undefined) return optional === true || devOptional === true || peer === true;
      return found.version === version && found.link === link;
    });
  } catch {
    return false;
  }
}
