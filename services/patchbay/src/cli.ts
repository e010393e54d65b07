import { parseArgs } from 'node:util';
import { loadConfig } from '@patchbay/config';
import { PatchbayError } from '@patchbay/core';
import { migrateDatabase } from './commands/migrate.js';
import { showConfig } from './commands/show-config.js';
import { HELP } from './commands/help.js';
import { start } from './commands/start.js';
import { explainError } from './explain-error.js';
import { VERSION } from './version.js';

const COMMANDS = ['start', 'config', 'migrate', 'help'] as const;
type Command = (typeof COMMANDS)[number];

interface Invocation {
  readonly command: Command;
  /** Settings given on the command line, by their variable. */
  readonly overrides: Readonly<Record<string, string>>;
}

/**
 * Runs one command and ends the process: exit code 0 when it worked, 1 when it did not, with what was wrong on
 * standard error, one line each.
 */
export async function runCli(args: readonly string[]): Promise<never> {
  try {
    process.exit(await runCommand(readInvocation(args)));
  } catch (error) {
    const lines = explainError(error);
    if (lines === undefined) console.error('patchbay: unexpected error; please report it:', error);
    for (const line of lines ?? []) console.error(`patchbay: ${line}`);
    process.exit(1);
  }
}

async function runCommand({ command, overrides }: Invocation): Promise<number> {
  switch (command) {
    case 'help':
      console.log(HELP);
      return 0;
    case 'config':
      showConfig(loadConfig(process.env, overrides));
      return 0;
    case 'migrate':
      await migrateDatabase(loadConfig(process.env, overrides));
      return 0;
    case 'start':
      return start(loadConfig(process.env, overrides));
  }
}

/** @throws PatchbayError invalid_argument for a command or an option that does not exist */
function readInvocation(args: readonly string[]): Invocation {
  const { values, positionals } = readOptions(args);
  if (values.version === true) {
    console.log(VERSION);
    process.exit(0);
  }
  const [word = 'start', ...rest] = positionals;
  const command = values.help === true ? 'help' : COMMANDS.find((known) => known === word);
  if (command === undefined || rest.length > 0) {
    const unknown = rest[0] ?? word;
    throw new PatchbayError('invalid_argument', `unknown command "${unknown}"; one of ${COMMANDS.join(', ')}`);
  }
  return { command, overrides: values.services === undefined ? {} : { PATCHBAY_SERVICES: values.services } };
}

function readOptions(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        services: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'v' },
      },
    });
  } catch (cause) {
    const [sentence = ''] = (cause as Error).message.split('. ');
    throw new PatchbayError('invalid_argument', `${sentence}; see "patchbay help"`, { cause });
  }
}
