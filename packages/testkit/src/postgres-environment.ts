import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The environment that Postgres's programs in `bin` need, and nothing of ours beside `PATH`. */
export function postgresEnvironment(bin: string): NodeJS.ProcessEnv {
  // Unpacked packages bring the libraries that the machine has not.
  const usr = bin.lastIndexOf('/usr/lib/postgresql/');
  const libraries = usr > 0 ? libraryFolders(bin.slice(0, usr)) : [];
  return {
    PATH: process.env['PATH'] ?? '',
    LC_ALL: 'C',
    TZ: 'UTC',
    ...(libraries.length === 0 ? {} : { LD_LIBRARY_PATH: libraries.join(':') }),
  };
}

function libraryFolders(root: string): string[] {
  const lib = join(root, 'usr', 'lib');
  if (!existsSync(lib)) return [];
  return [lib, ...readdirSync(lib).map((name) => join(lib, name))].filter((folder) => {
    return entriesOrNone(folder).some((file) => file.includes('.so'));
  });
}

function entriesOrNone(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
