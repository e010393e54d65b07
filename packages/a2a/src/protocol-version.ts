/**
 * The generations of A2A, as the header `A2A-Version` names them. `undefined`: the caller sent no such header, which
 * is a client of KubeMQ's gateway or a 0.3 client.
 */
export type ProtocolVersion = '0.3' | '1.0' | undefined;

/** What a caller's `A2A-Version` says: a known version, or `unsupported`. Patch numbers do not count (spec 3.6.2). */
export function readProtocolVersion(header: string | undefined): ProtocolVersion | 'unsupported' {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (text === '') return undefined;
  if (/^0\.3(\.\d+)?$/.test(text)) return '0.3';
  if (/^1\.0(\.\d+)?$/.test(text)) return '1.0';
  return 'unsupported';
}
