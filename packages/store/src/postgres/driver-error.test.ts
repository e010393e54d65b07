import { PatchbayError } from '@patchbay/core';
import { DatabaseError } from 'pg';
import { describe, expect, test } from 'vitest';
import { toStoreError, unknownOutcome } from './driver-error.js';

function databaseError(code: string): DatabaseError {
  const error = new DatabaseError('as Postgres says', 0, 'error');
  error.code = code;
  return error;
}

describe('errors of the driver', () => {
  test.each(['57P01', '08006', '53300', '40001', '40P01', '28P01', '3D000', '42501', '25006'])(
    'SQLSTATE %s means that the database cannot be asked',
    (code) => {
      expect(toStoreError(databaseError(code))).toMatchObject({
        code: 'store_unavailable',
        retryable: true,
        message: 'the database cannot be asked: as Postgres says',
        details: { sqlState: code },
      });
    },
  );

  test.each(['42P01', '22P05', '23505', '54001'])('SQLSTATE %s is our own fault', (code) => {
    const cause = databaseError(code);
    expect(toStoreError(cause)).toMatchObject({ code: 'internal', retryable: false, cause });
  });

  test('a refused connection on two addresses names both', () => {
    const refused = new AggregateError([new Error('connect ECONNREFUSED ::1:5432'), new Error('and 127.0.0.1')], '');
    expect(toStoreError(refused).message).toBe(
      'the database cannot be asked: connect ECONNREFUSED ::1:5432; and 127.0.0.1',
    );
  });

  test('what is translated already stays', () => {
    const error = new PatchbayError('unsupported_operation', 'no');
    expect(toStoreError(error)).toBe(error);
    expect(toStoreError(unknownOutcome(new Error('lost')))).toMatchObject({ details: { outcome: 'unknown' } });
  });
});
