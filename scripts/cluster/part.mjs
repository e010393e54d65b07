import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';

// A part must not outlive the script, however that ends. This shell holds the other end of a pipe: when the pipe closes
// it sends the part the signal that ends it in order. It lives as long as the part and ends with its exit code.
const KEEPER = `
signal=$1; shift
exec 3<&0
"$@" </dev/null 3<&- 4>&- & pid=$!
echo "$pid" >&4; exec 4>&-
(while read -r _; do :; done; kill "-$signal" "$pid"; kill -CONT "$pid") <&3 3<&- >/dev/null 2>&1 & watcher=$!
exec 3<&-
wait "$pid"; code=$?
kill "$watcher" 2>/dev/null
exit "$code"
`;
/** Lines that are kept to tell why a part ended. */
const MEMORY = 50;
/** What the shell says of a child that a signal ended; we say it ourselves. */
const SHELL_REPORT = /^(Killed|Terminated|Aborted)\b/;
/** What was written last may arrive after the end itself. */
const OUTPUT_GRACE_MS = 300;

/**
 * @typedef {object} PartOptions
 * @property {string} name For people: `node-1`.
 * @property {string} command
 * @property {string[]} args
 * @property {NodeJS.ProcessEnv} env
 * @property {string} [cwd]
 * @property {{ uid: number, gid: number }} [user] Who runs it; default: whoever runs the script.
 * @property {'TERM' | 'INT'} stopSignal Ends it in order.
 * @property {(line: string) => boolean} isNews Whether a line is shown; everything goes to the log file.
 * @property {RegExp} complaint What lines look like that say why it ended.
 * @property {string} logFile
 * @property {(line: string) => void} show
 */

/** One process of the cluster, with its output. */
export class Part {
  #keeper;
  #memory = [];
  #complaint;
  #isStopping = false;

  /** @param {PartOptions} options */
  constructor(options) {
    const { name, command, args, env, cwd, user, stopSignal, isNews, complaint, logFile, show } = options;
    this.name = name;
    this.#complaint = complaint;
    // A process group of its own: Ctrl-C in the terminal reaches the script alone, which ends the parts in order.
    this.#keeper = spawn('sh', ['-c', KEEPER, 'sh', stopSignal, command, ...args], {
      env,
      cwd,
      ...user,
      stdio: ['pipe', 'pipe', 'pipe', 'ignore', 'pipe'],
      detached: true,
    });
    this.#keeper.stdin.on('error', () => {}); // it has ended already
    const log = createWriteStream(logFile, { mode: 0o600 });
    log.on('error', () => {}); // a full disk is no reason to end
    const note = (line) => {
      if (SHELL_REPORT.test(line)) return;
      log.write(`${line}\n`);
      this.#memory = [...this.#memory.slice(1 - MEMORY), line];
      if (isNews(line)) show(line);
    };
    for (const stream of [this.#keeper.stdout, this.#keeper.stderr]) createInterface(stream).on('line', note);
    /** Process id of the part itself. @type {Promise<number>} */
    this.pid = new Promise((resolve) => {
      createInterface(this.#keeper.stdio[4]).once('line', (line) => resolve(Number(line)));
    });
    /** Resolves with why it ended, for people, when it has. @type {Promise<string>} */
    this.ended = this.#watch().finally(() => log.end());
    this.hasEnded = false;
  }

  /** Whether somebody wants it to end. */
  get isStopping() {
    return this.#isStopping;
  }

  /** Ends it in order; kills it when it has not ended within `limitMs`. */
  async stop(limitMs) {
    this.#isStopping = true;
    this.#keeper.stdin.end();
    const timer = setTimeout(() => this.kill(), limitMs);
    await this.ended;
    clearTimeout(timer);
  }

  /** Ends it at once. */
  kill() {
    this.#isStopping = true;
    if (this.hasEnded || this.#keeper.pid === undefined) return;
    try {
      process.kill(-this.#keeper.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }

  async #watch() {
    const how = await new Promise((resolve) => {
      this.#keeper.once('error', (error) => resolve(error.message));
      this.#keeper.once('exit', (code, signal) => resolve(describe(code, signal)));
    });
    this.hasEnded = true;
    await new Promise((resolve) => {
      this.#keeper.once('close', resolve);
      setTimeout(resolve, OUTPUT_GRACE_MS).unref();
    });
    if (how.startsWith('killed')) return how;
    const said = this.#memory.findLast((line) => this.#complaint.test(line)) ?? this.#memory.at(-1);
    return said === undefined ? how : `${how}: ${said.trim()}`;
  }
}

/** @param {number | null} code @param {string | null} signal */
function describe(code, signal) {
  if (signal !== null) return `killed by ${signal}`;
  // What a shell makes of the signal that killed its child.
  return code > 128 && code < 160 ? `killed by signal ${code - 128}` : `exit code ${code}`;
}
