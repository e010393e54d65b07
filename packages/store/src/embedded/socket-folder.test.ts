import { afterEach, describe, expect, test, vi } from 'vitest';
import { socketFolder, socketPath } from './socket-folder.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

describe('the folder of the socket', () => {
  test('is the same for the same data directory, and another for another', () => {
    expect(socketFolder('/a')).toBe(socketFolder('/a'));
    expect(socketFolder('/a')).not.toBe(socketFolder('/b'));
  });

  test('is short enough for a socket, however long the paths are', () => {
    vi.stubEnv('TMPDIR', `/${'long/'.repeat(30)}`);
    const path = socketPath(socketFolder(`/${'data/'.repeat(100)}`));
    expect(path).toMatch(/^\/tmp\/patchbay-[0-9a-f]{12}\/\.s\.PGSQL\.5432$/);
    expect(Buffer.byteLength(path)).toBeLessThan(107);
  });
});
