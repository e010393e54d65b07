import { randomInt } from 'node:crypto';

const CHARACTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** A node id for a machine: slug of its host name and four random characters, so that two nodes on it differ. */
export function defaultNodeId(hostName: string): string {
  const slug = hostName
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 58)
    .replace(/^-+|-+$/g, '');
  const suffix = Array.from({ length: 4 }, () => CHARACTERS[randomInt(CHARACTERS.length)]).join('');
  return `${slug === '' ? 'node' : slug}-${suffix}`;
}
