import { describe, expect, test } from 'vitest';
import { creationError } from './database-folder.js';

describe('a database that could not be created', () => {
  test.each([
    { end: { code: null, signal: 'SIGKILL' as const, isLate: false }, stderr: '' },
    {
      end: { code: 1, signal: null, isLate: false },
      stderr: 'RangeError: WebAssembly.Memory(): could not allocate memory',
    },
    {
      end: { code: null, signal: 'SIGABRT' as const, isLate: false },
      stderr: 'FATAL ERROR: JavaScript heap out of memory',
    },
  ])('for lack of memory says how much it takes ($end.signal, $stderr)', ({ end, stderr }) => {
    expect(creationError(end, stderr)).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(
        /killed, most likely for lack of memory: it needs about 900 MB .* and \d+ MB are free; .*PATCHBAY_DATABASE_URL/,
      ) as string,
    });
  });

  test('for another reason gives the last words of the process', () => {
    const error = creationError({ code: 1, signal: null, isLate: false }, 'a\nb\nc\nError: EIO: input/output error\n');
    expect(error.message).toBe(
      'creating the embedded database failed (exit code 1): b | c | Error: EIO: input/output error',
    );
  });

  test.each(['Error: ENOSPC: no space left on device', "ErrnoError { name: 'ErrnoError', errno: 51 }\n\nNode.js v20"])(
    'for lack of disk says so (%s)',
    (stderr) => {
      const error = creationError({ code: 1, signal: null, isLate: false }, stderr);
      expect(error.message).toMatch(/^no space left on the disk .* PATCHBAY_DATA_DIR$/);
    },
  );

  test('in time says so', () => {
    const error = creationError({ code: null, signal: 'SIGKILL', isLate: true }, '');
    expect(error.message).toContain('took more than 120 s');
  });
});
