/**
 * A point in time for the wire: UTC, RFC 3339, always three fraction digits, so that timestamps sort as strings
 * (clients of the registry compare `last_seen` that way).
 */
export function formatTimestamp(ms: number): string {
  return new Date(ms).toISOString();
}
