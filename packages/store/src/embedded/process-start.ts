import { readFileSync } from 'node:fs';

/**
 * When a process started, in the kernel's ticks since boot together with the boot's id: the same pid with another
 * start is another process. Undefined where there is no `/proc`, and for a process that is gone.
 */
export function processStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the name in parentheses and may hold spaces; the start is field 22.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = fields[22 - 3];
    return ticks === undefined ? undefined : `${bootId()}/${ticks}`;
  } catch {
    return undefined;
  }
}

/** Whether a process with this pid exists, whoever owns it. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
