/**
 * A value that may hold credentials, as it may be shown: URLs without user info (a NATS token is one) and without the
 * values of their query; anything else as `***`.
 */
export function maskSecret(value: string): string {
  return value
    .split(/,(?=\s*[a-z][a-z+.-]*:\/\/)/i) // not at a comma within a password
    .map((item) => maskOne(item.trim()))
    .join(',');
}

function maskOne(value: string): string {
  if (!URL.canParse(value) || !value.includes('://')) return '***';
  const url = new URL(value);
  const userInfo = url.username === '' && url.password === '' ? '' : '***@';
  const query = [...url.searchParams.keys()].map((name) => `${name}=***`).join('&');
  return `${url.protocol}//${userInfo}${url.host}${url.pathname}${query === '' ? '' : `?${query}`}`;
}
